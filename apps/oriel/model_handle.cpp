#include "model_handle.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>

#include <oriel/advanced.h>

#include "options.h"
#include "output.h"
#include "reply/messages.h"
#include "setting_flags.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {
std::string cacheFolder(const CommonOptions& options) {
  const std::filesystem::path folder = options.no_cache ? "" : userCacheFolder();
  return !folder.empty() && makePrivateFolder(folder) ? folder.u8string() : "";
}

std::string driverFolder(const CommonOptions& options) {
  return options.no_cache ? "" : userCacheFolder().u8string();
}

namespace {

void setCacheFolder(const std::string& folder, Settings* load) {
  if (!folder.empty()) {
    load->set("cache_folder", folder);
  }
}

// The folder for session files: the cache folder, or the system's temporary folder if that is not writable.
std::string folderForTurns(const std::string& cache) {
  if (!cache.empty() && canWriteTo(cache)) {
    return cache;
  }
  std::error_code error;
  const std::string temporary = std::filesystem::temp_directory_path(error).u8string();
  if (error || !canWriteTo(temporary)) {
    throw Failure{kExitFailed,
                  "no folder for the turns that leave the window: set TMPDIR or XDG_CACHE_HOME, or "
                  "leave out --recall"};
  }
  return temporary;
}

}  // namespace

Diagnostics::Diagnostics(bool verbose, bool warns, const std::string& progress)
    : verbose_(verbose && warns),
      shows_warnings_(warns && (verbose || isTerminal(Stream::kErr))),
      progress_(progress, std::chrono::milliseconds(150),
                progress == "loading" ? ProgressUnit::kBytes : ProgressUnit::kShare) {}

void Diagnostics::onLog(oriel_log_level level, const char* message, void* user) {
  auto* self = static_cast<Diagnostics*>(user);
  const std::lock_guard<std::mutex> hold(self->lock_);
  if (level == ORIEL_LOG_ERROR) {
    self->last_error_ = oneLine(withFlags(message));
    return;  // printed when the failed call is checked
  }
  const bool is_warning = level == ORIEL_LOG_WARNING;
  if (is_warning ? self->shows_warnings_ && !self->hushed_ : self->verbose_) {
    self->progress_.clear();
    tellText(dim(std::string("oriel: ") + (is_warning ? "warning: " : "") + oneLine(message)) +
             "\n");
  }
}

void Diagnostics::listen(oriel_options* options) const {
  options->log = onLog;
  options->log_user = const_cast<Diagnostics*>(this);
}

void Diagnostics::watch(oriel_options* options) const {
  options->progress = onProgress;
  options->progress_user = const_cast<Diagnostics*>(this);
}

int Diagnostics::onProgress(uint64_t done, uint64_t total, void* user) {
  auto* self = static_cast<Diagnostics*>(user);
  self->progress_.show(done, total);
  return interrupts() != 0 ? 1 : 0;
}

void Diagnostics::warn(const std::string& message) const {
  if (shows_warnings_) {
    tellText(dim("oriel: warning: " + message) + "\n");
  }
}

std::string Diagnostics::reason(oriel_status status) const {
  const std::lock_guard<std::mutex> hold(lock_);
  return last_error_.empty() ? std::string(oriel_status_text(status)) + ": try --verbose"
                             : last_error_;
}

void Diagnostics::check(oriel_status status, Blame blame) const {
  progress_.clear();
  switch (status) {
    case ORIEL_OK:
      return;
    case ORIEL_ERROR_CANCELLED:
      throw Failure{kExitCancelled, ""};
    case ORIEL_ERROR_MEMORY_BUDGET:
      throw Failure{kExitDoesNotFit, reason(status)};
    case ORIEL_ERROR_ARGUMENT:
      throw Failure{blame == Blame::kOptions ? kExitUsage : kExitFailed, reason(status)};
    default:
      throw Failure{kExitFailed, reason(status)};
  }
}

Model::Model(const CommonOptions& options, Load how, uint32_t pinned_tokens)
    : diagnostics_(options.verbose, how != Load::kGlance) {
  load(options, how, pinned_tokens);
}

void Model::loadAgain(const CommonOptions& options, uint32_t pinned_tokens) {
  oriel_model_free(model_);
  model_ = nullptr;
  load(options, Load::kDevice, pinned_tokens);
}

void Model::load(const CommonOptions& options, Load load, uint32_t pinned_tokens) {
  const std::string path = modelPath(options);
  CommonOptions given = options;
  std::optional<oriel_speed> speed;
  if (load != Load::kDevice) {
    for (const char* const name : {"min_speed", "constraints", "prefix_file"}) {
      given.load.erase(name);
    }
    given.load.set("device", "none");
  } else {
    const std::string cache = cacheFolder(options);
    setCacheFolder(cache, &given.load);
    if (options.load.number("retrieval") != 0 && !options.load.has("retrieval_folder")) {
      given.load.set("retrieval_folder", folderForTurns(cache));
    }
    if (options.load.real("min_speed") > 0) {
      speed = deviceSpeed(options, path.c_str(), nullptr);
    }
  }
  if (load == Load::kDevice) {
    catchInterrupts();
  }
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    oriel::Options library_options = planOptions(given, pinned_tokens);
    diagnostics_.listen(&library_options);
    if (load == Load::kDevice) {
      diagnostics_.watch(&library_options);
    }
    library_options.speed = speed ? &*speed : nullptr;
    const oriel_status status = oriel_model_load(path.c_str(), &library_options, &model_);
    if (status != ORIEL_ERROR_IO || given.no_cache) {
      diagnostics_.check(status, Diagnostics::Blame::kOptions);
      break;
    }
    given.no_cache = true;  // a full disk must not keep the model from loading
  }
  load_ms_ =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  try {
    describe();
    if (load == Load::kDevice) {
      diagnostics_.check(oriel_model_get_plan(model_, &plan_));
    }
  } catch (...) {
    oriel_model_free(model_);
    model_ = nullptr;
    throw;
  }
}

void Model::describe() {
  diagnostics_.check(described(&info_, [this](char* text, size_t capacity, size_t* needed) {
    return oriel_model_describe(model_, text, capacity, needed);
  }));
}

oriel_status Model::recover(oriel_session* session) {
  diagnostics_.hush(true);
  const oriel_status status =
      oriel_session_recover(session, nullptr, 0, Diagnostics::onProgress, &diagnostics_, nullptr);
  diagnostics_.hush(false);
  describe();
  return status;
}

Model::~Model() { oriel_model_free(model_); }

std::string Model::chatFormat(const Settings& session) const {
  const auto options = session.as<oriel::SessionOptions>();
  char name[64];
  size_t needed = 0;
  diagnostics_.check(
      oriel_render(model_, &options, nullptr, 0, ORIEL_RENDER_NAME, name, sizeof(name), &needed),
      Diagnostics::Blame::kOptions);
  return {name, needed};
}

namespace {

/// Returns the output of call(buffer, capacity, needed), of any length.
template <typename Buffer, typename Call>
Buffer whole(Buffer buffer, const Diagnostics& diagnostics, const Call& call) {
  size_t needed = 0;
  oriel_status status = call(buffer.data(), buffer.size(), &needed);
  if (status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    buffer.resize(needed);
    status = call(buffer.data(), buffer.size(), &needed);
  }
  diagnostics.check(status);
  buffer.resize(needed);
  return buffer;
}

/// "": the text before the first message.
std::string textOf(const Json& messages) { return messages.empty() ? "" : messagesText(messages); }

}  // namespace

std::vector<int32_t> Model::tokenize(std::string_view text, uint32_t flags) const {
  // One id per byte is enough except for very short texts (BOS, a leading space).
  return whole(std::vector<int32_t>(text.size() + 8), diagnostics_,
               [&](int32_t* ids, size_t room, size_t* needed) {
                 return oriel_tokenize(model_, text.data(), text.size(), flags, ids, room, needed);
               });
}

std::string Model::detokenize(const std::vector<int32_t>& ids, uint32_t flags) const {
  return whole(std::string(ids.size() * 16 + 16, '\0'), diagnostics_,
               [&](char* text, size_t room, size_t* needed) {
                 return oriel_detokenize(model_, ids.data(), ids.size(), flags, text, room, needed);
               });
}

std::string Model::render(const Settings& session, const Json& messages, uint32_t flags) const {
  const auto options = session.as<oriel::SessionOptions>();
  const std::string list = textOf(messages);
  return whole(std::string(4096, '\0'), diagnostics_, [&](char* text, size_t room, size_t* needed) {
    return oriel_render(model_, &options, list.data(), list.size(), flags, text, room, needed);
  });
}

oriel_status Model::compileForm(const Settings& session, const Settings& reply,
                                Json* result) const {
  Json options = Json::object();
  for (const char* const name :
       {"schema", "grammar", "tool_choice", "strict_schema", "open_objects"}) {
    if (reply.has(name)) {
      options[name] = reply.text(name);
    }
  }
  const auto chat = session.as<oriel::SessionOptions>();
  const std::string asked = textOf(options);
  std::string text(4096, '\0');
  size_t needed = 0;
  const auto call = [&] {
    return oriel_render(model_, &chat, asked.data(), asked.size(), ORIEL_RENDER_CHECK, text.data(),
                        text.size(), &needed);
  };
  oriel_status status = call();
  if (status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    text.resize(needed);
    status = call();
  }
  if (status == ORIEL_OK) {
    *result = jsonFrom(text.c_str());
  }
  return status;
}

void Model::checkForm(const Settings& session, const Settings& reply,
                      const std::string& file) const {
  if (!constrains(reply)) {
    return;
  }
  Json compiled;
  diagnostics_.check(compileForm(session, reply, &compiled));
  if (compiled["error"].is_string()) {
    throw Failure{kExitFailed, (file.empty() ? "" : file + ": ") +
                                   withFlags(compiled["error"].get<std::string>())};
  }
}

std::vector<int32_t> Model::renderedIds(const Settings& session, const Json& messages,
                                        uint32_t flags) const {
  const auto options = session.as<oriel::SessionOptions>();
  const std::string list = textOf(messages);
  return whole(std::vector<int32_t>(1024), diagnostics_,
               [&](int32_t* ids, size_t room, size_t* needed) {
                 return oriel_render_tokens(model_, &options, list.data(), list.size(), flags, ids,
                                            room, needed);
               });
}

Session::Session(const Model& model, const Settings& options) : diagnostics_(model.diagnostics()) {
  open(model, options);
}

Session::Session(Fork fork) : diagnostics_(fork.of.diagnostics_), reading_(fork.of.reading_) {
  check(oriel_session_fork(fork.of.get(), &session_));
}

void Session::open(const Model& model, const Settings& options) {
  auto library_options = options.as<oriel::SessionOptions>();
  library_options.progress = onReading;
  library_options.progress_user = reading_.get();
  check(oriel_session_create(model.get(), &library_options, &session_),
        Diagnostics::Blame::kOptions);
}

int Session::onReading(uint64_t done, uint64_t total, void* user) {
  Reading& reading = *static_cast<Reading*>(user);
  const bool stop = cancelPending();
  if (done >= total || stop) {
    reading.reset();
  } else {
    if (!reading) {
      reading.emplace("reading", std::chrono::milliseconds(400), ProgressUnit::kTokens);
    }
    reading->show(done, total);
  }
  return stop ? 1 : 0;
}

Session::~Session() { close(); }

void Session::close() {
  oriel_session_destroy(session_);
  session_ = nullptr;
}

void Session::reset() { check(oriel_session_reset(session_)); }

void Session::append(const int32_t* ids, size_t count) {
  check(cancellable([&] { return oriel_session_append(session_, ids, count, nullptr, nullptr); }));
}

bool Session::tryGoBack(uint64_t position) {
  const oriel_status status = cancellable([&] {
    return oriel_session_go_back(session_, ORIEL_BACK_TO_POSITION, position, nullptr, 0);
  });
  if (status != ORIEL_ERROR_CONTEXT) {
    check(status);
  }
  return status == ORIEL_OK;
}

oriel_stats Session::stats() const {
  oriel_stats stats = ORIEL_STATS_INIT;
  check(oriel_session_get_stats(session_, &stats));
  return stats;
}

std::vector<int32_t> Session::tokens() const {
  size_t count = 0;
  (void)oriel_session_get_tokens(session_, 0, nullptr, 0, &count);
  std::vector<int32_t> ids(count);
  check(oriel_session_get_tokens(session_, 0, ids.data(), ids.size(), &count));
  return ids;
}

Json Session::describe() const {
  Json json;
  check(described(&json, [this](char* text, size_t capacity, size_t* needed) {
    return oriel_session_describe(session_, text, capacity, needed);
  }));
  return json;
}

oriel_speed deviceSpeed(const CommonOptions& options, const char* path, const char* shape,
                        bool again) {
  catchInterrupts();
  Diagnostics diagnostics(options.verbose, true, "measuring the device");
  CommonOptions given = options;
  setCacheFolder(cacheFolder(options), &given.load);
  oriel::Options library_options = memoryOptions(given);
  diagnostics.listen(&library_options);
  diagnostics.watch(&library_options);
  oriel_speed speed = ORIEL_INIT(oriel_speed);
  diagnostics.check(oriel_speed_measure(path, shape, again ? 1 : 0, &library_options, &speed));
  return speed;
}

Json opTimes(const CommonOptions& options, const std::string& path, uint64_t depth,
             uint32_t repeat) {
  catchInterrupts();
  Diagnostics diagnostics(options.verbose, true, "timing ops");
  CommonOptions given = options;
  setCacheFolder(cacheFolder(options), &given.load);
  oriel::Options library_options = planOptions(given, 0);
  diagnostics.listen(&library_options);
  Json ops = Json::array();
  const auto add = [](const char* list, const char* op, uint32_t count, uint32_t dispatches,
                      double ms, double expected_ms, void* user) {
    Json one;
    one["list"] = list;
    one["op"] = op;
    one["count"] = count;
    one["dispatches"] = dispatches;
    one["ms"] = ms;
    one["expected_ms"] = expected_ms;
    static_cast<Json*>(user)->push_back(one);
  };
  diagnostics.check(
      oriel_op_times_measure(path.c_str(), depth, repeat, &library_options, add, &ops));
  return ops;
}

void pictureRows(const CommonOptions& options, const DecodedPicture& picture,
                 oriel_picture_rows_fn on_rows, void* user) {
  const Diagnostics diagnostics(options.verbose);
  CommonOptions given = options;
  setCacheFolder(cacheFolder(options), &given.load);
  oriel::Options library_options = planOptions(given, 0);
  diagnostics.listen(&library_options);
  diagnostics.check(oriel_picture_rows(modelPath(given).c_str(), picture.rgb.data(), picture.width,
                                       picture.height, &library_options, on_rows, user));
}

}  // namespace cli
