#include "model_handle.h"

#include <chrono>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>

#include <oriel/sessions.h>

#include "failure.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"
#include "terminal/wrap.h"

namespace cli {
namespace {

std::vector<oriel_message> messageList(const std::vector<Message>& messages) {
  std::vector<oriel_message> list;
  list.reserve(messages.size());
  for (const Message& message : messages) {
    list.push_back({message.role.c_str(), message.text.data(), message.text.size()});
  }
  return list;
}

}  // namespace

std::string cacheFolder(const CommonOptions& options) {
  const std::filesystem::path folder = options.no_cache ? "" : userCacheFolder();
  return !folder.empty() && makePrivateFolder(folder) ? folder.u8string() : "";
}

namespace {

// Files that go with a session: in the cache folder, or where nothing can be written there in the system's folder for such.
std::string folderForTurns(const std::string& cache) {
  if (!cache.empty() && canWriteTo(cache)) {
    return cache;
  }
  std::error_code error;
  const std::string temporary = std::filesystem::temp_directory_path(error).u8string();
  if (error || !canWriteTo(temporary)) {
    throw Failure{kExitFailed,
                  "there is no folder for the turns that leave the window: set TMPDIR or "
                  "XDG_CACHE_HOME to one, or leave out --recall"};
  }
  return temporary;
}

}  // namespace

Diagnostics::Diagnostics(bool verbose, bool warns, std::string progress)
    : verbose_(verbose && warns),
      shows_warnings_(warns && (verbose || isTerminal(Stream::kErr))),
      progress_(std::move(progress), std::chrono::milliseconds(150)) {}

void Diagnostics::onLog(oriel_log_level level, const char* message, void* user) {
  auto* self = static_cast<Diagnostics*>(user);
  const std::lock_guard<std::mutex> hold(self->lock_);
  if (level == ORIEL_LOG_ERROR) {
    self->last_error_ = oneLine(message);
    return;  // printed when the failed call is checked
  }
  const bool is_warning = level == ORIEL_LOG_WARNING;
  if (is_warning ? self->shows_warnings_ && !self->hushed_ : self->verbose_) {
    self->progress_.clear();
    tellText(dim(std::string("oriel: ") + (is_warning ? "warning: " : "") + oneLine(message)) +
             "\n");
  }
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
  const std::string cache = load == Load::kDevice ? cacheFolder(options) : "";
  const std::string turns =
      load == Load::kDevice && options.recall_bytes != 0 ? folderForTurns(cache) : "";
  oriel_options library_options = planOptions(options);
  library_options.pinned_tokens = pinned_tokens;
  library_options.log = Diagnostics::onLog;
  library_options.log_user = &diagnostics_;
  const bool needs_speed = load == Load::kDevice && options.min_tokens_per_s > 0;
  const std::optional<oriel_speed> speed =
      needs_speed ? std::optional(deviceSpeed(path, options)) : std::nullopt;
  library_options.speed = speed ? &*speed : nullptr;
  if (load != Load::kDevice) {
    library_options.min_tokens_per_s = 0;
    library_options.device = ORIEL_DEVICE_NONE;
    library_options.device_number = 0;
    library_options.constraints = 0;
    library_options.prefix_file = nullptr;
  } else {
    catchInterrupts();
    library_options.progress = Diagnostics::onProgress;
    library_options.progress_user = &diagnostics_;
    library_options.cache_dir = cache.empty() ? nullptr : cache.c_str();
    library_options.recall_dir = turns.empty() ? nullptr : turns.c_str();
  }
  const auto start = std::chrono::steady_clock::now();
  diagnostics_.check(oriel_model_load(path.c_str(), &library_options, &model_),
                     Diagnostics::Blame::kOptions);
  load_ms_ =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  info_.struct_size = sizeof(info_);
  plan_.struct_size = sizeof(plan_);
  try {
    diagnostics_.check(oriel_model_get_info(model_, &info_));
    if (load == Load::kDevice) {
      diagnostics_.check(oriel_model_get_plan(model_, &plan_));
    }
  } catch (...) {
    oriel_model_free(model_);
    model_ = nullptr;
    throw;
  }
}

oriel_status Model::recover(oriel_session* session) {
  oriel_recover_options options = {};
  options.struct_size = sizeof(options);
  options.progress = Diagnostics::onProgress;
  options.progress_user = &diagnostics_;
  diagnostics_.hush(true);
  const oriel_status status = oriel_session_recover(session, &options, nullptr);
  diagnostics_.hush(false);
  diagnostics_.check(oriel_model_get_info(model_, &info_));
  return status;
}

Model::~Model() { oriel_model_free(model_); }

std::vector<int32_t> Model::tokenize(std::string_view text, uint32_t flags) const {
  size_t needed = 0;
  // One id a byte is enough for all but the smallest texts (a BOS, a space put first).
  std::vector<int32_t> ids(text.size() + 8);
  oriel_status status =
      oriel_tokenize(model_, text.data(), text.size(), flags, ids.data(), ids.size(), &needed);
  if (status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    ids.resize(needed);
    status =
        oriel_tokenize(model_, text.data(), text.size(), flags, ids.data(), ids.size(), &needed);
  }
  diagnostics_.check(status);
  ids.resize(needed);
  return ids;
}

std::string Model::detokenize(const std::vector<int32_t>& ids, uint32_t flags) const {
  size_t needed = 0;
  std::string text(ids.size() * 16 + 16, '\0');
  oriel_status status =
      oriel_detokenize(model_, ids.data(), ids.size(), flags, text.data(), text.size(), &needed);
  if (status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    text.resize(needed);
    status =
        oriel_detokenize(model_, ids.data(), ids.size(), flags, text.data(), text.size(), &needed);
  }
  diagnostics_.check(status);
  text.resize(needed);
  return text;
}

std::string Model::chatFormat(const ChatFormatOptions& options) const {
  const oriel_chat_options chat = chatOptions(options);
  const char* const name = oriel_chat_template(model_, &chat);
  diagnostics_.check(name == nullptr ? ORIEL_ERROR_ARGUMENT : ORIEL_OK,
                     Diagnostics::Blame::kOptions);
  return name;
}

namespace {

/// What render(buffer, capacity, needed) writes, however long it is.
template <typename Buffer, typename Render>
Buffer whole(Buffer buffer, const Diagnostics& diagnostics, const Render& render) {
  size_t needed = 0;
  oriel_status status = render(buffer.data(), buffer.size(), &needed);
  if (status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    buffer.resize(needed);
    status = render(buffer.data(), buffer.size(), &needed);
  }
  diagnostics.check(status);
  buffer.resize(needed);
  return buffer;
}

}  // namespace

std::string Model::render(const ChatFormatOptions& options, const std::vector<Message>& messages,
                          bool generation_prompt) const {
  const std::vector<oriel_message> list = messageList(messages);
  const oriel_chat_options chat = chatOptions(options);
  return whole(std::string(4096, '\0'), diagnostics_, [&](char* text, size_t room, size_t* needed) {
    return oriel_render(model_, &chat, list.data(), list.size(), generation_prompt ? 1 : 0, text,
                        room, needed);
  });
}

std::vector<int32_t> Model::renderedIds(const ChatFormatOptions& options,
                                        const std::vector<Message>& messages,
                                        bool generation_prompt, uint32_t flags) const {
  const std::vector<oriel_message> list = messageList(messages);
  const oriel_chat_options chat = chatOptions(options);
  return whole(std::vector<int32_t>(1024), diagnostics_,
               [&](int32_t* ids, size_t room, size_t* needed) {
                 return oriel_render_tokens(model_, &chat, list.data(), list.size(),
                                            generation_prompt ? 1 : 0, flags, ids, room, needed);
               });
}

std::string Model::renderJson(const ChatFormatOptions& options, const std::string& messages,
                              bool generation_prompt) const {
  const oriel_chat_options chat = chatOptions(options);
  return whole(std::string(4096, '\0'), diagnostics_, [&](char* text, size_t room, size_t* needed) {
    return oriel_render_json(model_, &chat, messages.data(), messages.size(),
                             generation_prompt ? 1 : 0, text, room, needed);
  });
}

std::vector<int32_t> Model::renderedJsonIds(const ChatFormatOptions& options,
                                            const std::string& messages, bool generation_prompt,
                                            uint32_t flags) const {
  const oriel_chat_options chat = chatOptions(options);
  return whole(
      std::vector<int32_t>(1024), diagnostics_, [&](int32_t* ids, size_t room, size_t* needed) {
        return oriel_render_json_tokens(model_, &chat, messages.data(), messages.size(),
                                        generation_prompt ? 1 : 0, flags, ids, room, needed);
      });
}

Session::Session(const Model& model, const ChatFormatOptions& chat, uint64_t assumed_tokens,
                 bool split_turns, bool forget)
    : diagnostics_(model.diagnostics()), split_turns_(split_turns), forget_(forget) {
  open(model, chat, assumed_tokens);
}

Session::Session(Fork fork)
    : diagnostics_(fork.of.diagnostics_),
      split_turns_(fork.of.split_turns_),
      forget_(fork.of.forget_),
      reading_(fork.of.reading_) {
  check(oriel_session_fork(fork.of.get(), &session_));
}

void Session::open(const Model& model, const ChatFormatOptions& chat, uint64_t assumed_tokens) {
  const oriel_chat_options chat_options = chatOptions(chat);
  oriel_session_options options = {};
  options.struct_size = sizeof(options);
  options.chat = &chat_options;
  options.assumed_tokens = assumed_tokens;
  options.split_turns = split_turns_ ? 1 : 0;
  options.forget_evicted = forget_ ? 1 : 0;
  options.progress = onReading;
  options.progress_user = reading_.get();
  check(oriel_session_create(model.get(), &options, &session_), Diagnostics::Blame::kOptions);
}

int Session::onReading(uint64_t done, uint64_t total, void* user) {
  Reading& reading = *static_cast<Reading*>(user);
  const bool stop = cancelPending();
  if (done >= total || stop) {
    reading.reset();
  } else {
    if (!reading) {
      reading.emplace("reading", std::chrono::milliseconds(400));
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
  check(cancellable([&] { return oriel_session_append(session_, ids, count); }));
}

bool Session::tryRewind(uint64_t position) {
  const oriel_status status = cancellable([&] { return oriel_session_rewind(session_, position); });
  if (status != ORIEL_ERROR_CONTEXT) {
    check(status);
  }
  return status == ORIEL_OK;
}

oriel_stats Session::stats() const {
  oriel_stats stats = {};
  stats.struct_size = sizeof(stats);
  check(oriel_session_get_stats(session_, &stats));
  return stats;
}

oriel_speed deviceSpeed(const CommonOptions& options, const SpeedMeasurer& measure) {
  catchInterrupts();
  Diagnostics diagnostics(options.verbose, true, "measuring the device");
  const std::string cache = cacheFolder(options);
  oriel_options library_options = planOptions(options);
  library_options.min_tokens_per_s = 0;
  library_options.cache_dir = cache.empty() ? nullptr : cache.c_str();
  library_options.log = Diagnostics::onLog;
  library_options.log_user = &diagnostics;
  library_options.progress = Diagnostics::onProgress;
  library_options.progress_user = &diagnostics;
  oriel_speed speed = {};
  speed.struct_size = sizeof(speed);
  diagnostics.check(measure(library_options, &speed));
  return speed;
}

oriel_speed deviceSpeed(const std::string& path, const CommonOptions& options, bool again) {
  const auto measure = [&path, again](oriel_options library_options, oriel_speed* speed) {
    library_options.measure_again = again ? 1 : 0;
    return oriel_speed_measure(path.c_str(), &library_options, speed);
  };
  return deviceSpeed(options, measure);
}

}  // namespace cli
