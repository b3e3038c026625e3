// Random conversations for any time: chats, cancels, forks, trims, saves, and faults of memory, files and devices, with
// all kinds of models in turn (soak.h). Checks after each call that the totals add up; and sometimes, that a saved and
// restored session continues like its source, and that nothing is left when all sessions have ended.
//
//   oriel_soak [--seconds N] [--seed N] [--device cpu | vulkan=ICD] [--layer FOLDER] [--kind NAME]
//              [--trace 1]     prints each call before it is made
//              [--calls N]     N calls of a --kind without a time limit: prints after each its status and a hash of all
//                              held ids, so that two builds can be compared line by line; nothing is cancelled or
//                              damaged, and no memory is refused, since the effect depends on the build
//
// Ends with a summary and "N passed, N failed"; a failed check is printed at once, with the number of the call.
#include "soak/soak.h"

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "faults/file_faults.h"
#include "support/random_families.h"

namespace oriel_internal::test {

// Invariants between the calls of a soak.

oriel_stats Soak::stats(oriel_session* session) {
  oriel_stats stats = sized<oriel_stats>();
  (void)oriel_session_get_stats(session, &stats);
  return stats;
}

void Soak::look() {
  for (oriel_session* session : sessions_) {
    if (session == nullptr) {
      continue;
    }
    const oriel_stats is = stats(session);
    oriel_stats view = sized<oriel_stats>();
    (void)oriel_session_get_stats(session, &view);
    size_t ids = 0;
    (void)oriel_session_get_tokens(session, 0, nullptr, 0, &ids);
    ledger_.check("the window is not longer than it may be", is.window_used <= is.window_capacity,
                  "");
    ledger_.check("what is allocated is what was planned",
                  is.device_bytes + is.host_bytes <= plan_.total_bytes,
                  std::to_string(is.device_bytes + is.host_bytes));
    // A message that was taken back may have overwritten tokens visible to the newest token.
    ledger_.check("what is seen is there",
                  view.position == is.position && view.first_stored <= view.position &&
                      view.first_visible <= view.position,
                  std::to_string(view.first_visible));
    ledger_.check("what was evicted is not held",
                  is.evicted + is.window_used <= is.position + is.window_capacity, "");
  }
}

std::vector<uint8_t> Soak::saved(oriel_session* session) {
  size_t needed = 0;
  (void)oriel_snapshot_save(session, nullptr, 0, &needed);
  std::vector<uint8_t> bytes(needed);
  const oriel_status status = oriel_snapshot_save(session, bytes.data(), bytes.size(), &needed);
  bytes.resize(status == ORIEL_OK ? needed : 0);
  ledger_.noteLoss(status);
  return bytes;
}

std::vector<int32_t> Soak::continuation(oriel_session* session) {
  ReplyOptions options;
  options.max_tokens = 12;
  options.greedy = 1;
  options.set("ignore_stop", true);
  std::vector<int32_t> ids;
  const oriel_status status = oriel_session_generate(session, &options, keep, &ids, nullptr);
  cut(session, status, ids);
  ledger_.noteLoss(status);
  return ids;
}

void Soak::compareWithTwin() {
  oriel_session** twin = nullptr;
  oriel_session* session = nullptr;
  for (uint32_t i = 0; i < n_sessions_; ++i) {
    twin = sessions_[i] == nullptr ? &sessions_[i] : twin;
    session = sessions_[i] != nullptr ? sessions_[i] : session;
  }
  if (ledger_.lost || twin == nullptr || session == nullptr || stats(session).position == 0) {
    return;
  }
  ledger_.begin("twin");
  const SessionOptions options = sessionOptions();
  const oriel_status made = oriel_session_create(model_, &options, twin);
  ledger_.noteLoss(made);  // device lost by loseDevice(), reported by the next call that uses it
  if (made != ORIEL_OK) {
    ledger_.check("a twin can be made", ledger_.lost, oriel_model_last_error(model_));
    return;
  }
  const std::vector<uint8_t> bytes = saved(session);
  if (!bytes.empty()) {
    const oriel_status status =
        oriel_snapshot_restore(*twin, bytes.data(), bytes.size(), 0, nullptr);
    ledger_.noteLoss(status);
    const std::vector<int32_t> here = continuation(session);
    const std::vector<int32_t> there = continuation(*twin);
    ledger_.check("a twin goes on in the same words",
                  ledger_.lost || (status == ORIEL_OK && here == there), oriel_status_text(status));
    ++twins_;
  }
  oriel_session_destroy(*twin);
  *twin = nullptr;
}

void Soak::printIds() {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto mix = [&hash](uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
  for (oriel_session* session : sessions_) {
    const oriel_stats is = session != nullptr ? stats(session) : oriel_stats{};
    mix(session != nullptr ? is.position + 1 : 0);
    std::vector<int32_t> ids(is.position - is.first_stored);
    size_t count = 0;
    if (!ids.empty()) {
      ledger_.check("ids that are stored can be read",
                    oriel_session_get_tokens(session, is.first_stored, ids.data(), ids.size(),
                                             &count) == ORIEL_OK &&
                        count == ids.size(),
                    "");
    }
    for (const int32_t id : ids) {
      mix(static_cast<uint32_t>(id));
    }
  }
  std::printf("%llu %s %016llx\n", static_cast<unsigned long long>(ledger_.step),
              ledger_.last().c_str(), static_cast<unsigned long long>(hash));
}

void Soak::endAll() {
  ledger_.begin("the end of all sessions");
  for (oriel_session*& session : sessions_) {
    oriel_session_destroy(session);
    session = nullptr;
  }
  split_turns_ = below(2);
  forgets_ = below(2);
  // A model with a lost device has released memory that only a session can take again.
  if (!ledger_.lost && rest_bytes_ == 0) {
    rest_bytes_ = memory_.live_bytes;
  }
  ledger_.check(
      "memory is what it was", ledger_.lost || memory_.live_bytes == rest_bytes_,
      std::to_string(memory_.live_bytes) + " bytes, before " + std::to_string(rest_bytes_));
  if (ledger_.lost) {
    create(&sessions_[0]);  // a session to recover the device
  }
}

namespace {

using Clock = std::chrono::steady_clock;
constexpr uint32_t kTwinEvery = 40;
constexpr uint32_t kAllEndEvery = 100;
constexpr uint32_t kKindEvery = 200;

}  // namespace

bool Soak::run() {
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  bool loaded = load();
  const auto over = [&] {
    return settings_.calls != 0 ? ledger_.step >= settings_.calls : elapsed() >= settings_.seconds;
  };
  while (loaded && !over()) {
    ++ledger_.step;
    act();
    look();
    if (settings_.calls != 0) {
      printIds();
    }
    if (ledger_.step % kTwinEvery == 0) {
      compareWithTwin();
    }
    if (ledger_.step % kAllEndEvery == 0) {
      endAll();
    }
    if (settings_.calls == 0 && ledger_.step % kKindEvery == 0) {
      unload();
      const uint64_t pages = residentPages();
      // Caches of the C library and the driver are full after the first quarter.
      uint64_t& most = elapsed() < settings_.seconds / 4   ? warm_pages_
                       : elapsed() < settings_.seconds / 2 ? early_pages_
                                                           : late_pages_;
      most = std::max(most, pages);
      early_loads_ += late_pages_ == 0 ? 1 : 0;
      loaded = load();
    }
  }
  if (loaded) {
    endAll();
    unload();
  }
  // Shorter runs end before the C library's caches are full, and slow devices before every kind has run in the first
  // half.
  const uint32_t kinds = settings_.kind != nullptr ? 1 : std::size(kSoakKinds);
  if (settings_.seconds >= 300 && early_loads_ >= 2 * kinds && early_pages_ != 0 &&
      late_pages_ != 0) {
    ledger_.check("resident memory is flat", late_pages_ <= early_pages_,
                  std::to_string(early_pages_) + " pages at most in the second quarter, " +
                      std::to_string(late_pages_) + " in the second half");
  }
  ledger_.printCalls();
  std::printf("%llu calls, %llu twins, resident pages %llu, then %llu, then %llu\n",
              static_cast<unsigned long long>(ledger_.step),
              static_cast<unsigned long long>(twins_), static_cast<unsigned long long>(warm_pages_),
              static_cast<unsigned long long>(early_pages_),
              static_cast<unsigned long long>(late_pages_));
  ledger_.printChecks();
  return loaded;
}

bool Soak::load() {
  kind_ =
      settings_.kind != nullptr ? settings_.kind : &kSoakKinds[n_loaded_ % std::size(kSoakKinds)];
  ++n_loaded_;
  Options options;
  options.device = settings_.vulkan ? "vulkan" : "cpu";
  options.memory_bytes = 96u << 20;
  options.window_tokens = 128;
  options.set("prefill_batch", 32);
  options.sessions = kSessions;
  options.set("transcript", 16384);
  options.set("retrieval_folder", folder_);
  options.allocator = &memory_.table;
  options.log = &Soak::log;
  options.log_user = this;
  kind_->set(&options);
  ledger_.begin("load " + std::string(kind_->name));
  const std::string path =
      isFile() ? std::string(ORIEL_SOURCE_DIR "/") + kind_->model : folder_ + "/model.gguf";
  if (!isFile()) {
    randomFamily(kind_->model).write(path);
  }
  if (oriel_model_load(path.c_str(), &options, &model_) != ORIEL_OK) {
    std::fprintf(stderr, "oriel_soak: %s cannot be loaded: %s\n", path.c_str(),
                 ledger_.lines.empty() ? "no line says why" : ledger_.lines.back().c_str());
    return false;
  }
  n_sessions_ = options.sessions;
  plan_ = sized<oriel_plan>();
  (void)oriel_model_get_plan(model_, &plan_);
  rest_bytes_ = 0;
  return true;
}

void Soak::unload() {
  ledger_.begin("the end of a model");
  for (oriel_session*& session : sessions_) {
    oriel_session_destroy(session);
    session = nullptr;
  }
  oriel_model_free(model_);
  model_ = nullptr;
  ledger_.lost = false;
  ledger_.check("nothing is left", memory_.live_bytes == 0, std::to_string(memory_.live_bytes));
  if (faultLayer() != nullptr) {
    ledger_.check("no object of Vulkan is left", faultLayer()->objects() == 0,
                  faultLayer()->complaints());
    faultLayer()->clear();
  }
}

void Soak::log(oriel_log_level level, const char* message, void* user) {
  if (level == ORIEL_LOG_ERROR) {
    static_cast<Soak*>(user)->ledger_.lines.emplace_back(message);
  }
}

// The same for all current sessions: a session equals its twin only if both split turns, or neither.
SessionOptions Soak::sessionOptions() const {
  SessionOptions options;
  options.set("evict", split_turns_ != 0 ? "tokens" : "turns");
  options.set("forget", kind_->forgets && split_turns_ == 0 ? forgets_ : 0);
  options.chat_template = isFile() ? nullptr : "plain";  // families have no format of their own
  options.progress = settings_.trace ? tellRead : nullptr;
  return options;
}

int Soak::tellRead(uint64_t done, uint64_t total, void*) {
  std::printf("    %llu of %llu tokens\n", static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(total));
  (void)std::fflush(stdout);
  return 0;
}

int soak(int count, char** words) {
  Settings settings;
  std::string layer;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = words[i];
    const std::string value = words[i + 1];
    if (name == "--seconds") {
      settings.seconds = std::strtod(value.c_str(), nullptr);
    } else if (name == "--seed") {
      settings.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--calls") {
      settings.calls = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--trace") {
      settings.trace = value != "0";
    } else if (name == "--kind") {
      for (const SoakKind& kind : kSoakKinds) {
        settings.kind = kind.name == value ? &kind : settings.kind;
      }
      if (settings.kind == nullptr) {
        std::fprintf(stderr, "oriel_soak: no kind is called %s\n", value.c_str());
        return 2;
      }
    } else if (name == "--layer") {
      layer = value;
    } else if (name == "--device" && value != "cpu") {
      settings.vulkan = true;
      const std::string icd = value.substr(value.find('=') + 1);
      ::setenv("VK_ICD_FILENAMES", icd.c_str(), 1);
      ::setenv("VK_DRIVER_FILES", icd.c_str(), 1);
    }
  }
  if (settings.calls != 0 && settings.kind == nullptr) {
    std::fprintf(stderr, "oriel_soak: --calls needs --kind\n");
    return 2;
  }
  if (settings.vulkan && !layer.empty() && loadFaultLayer(layer) == nullptr) {
    std::fprintf(stderr, "oriel_soak: the fault layer in %s cannot be loaded: build it first\n",
                 layer.c_str());
    return 2;
  }
  const std::string folder =
      std::filesystem::temp_directory_path() / ("oriel-soak-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  Soak run(settings, folder);
  const bool loaded = run.run();
  std::filesystem::remove_all(folder);
  return loaded && run.failed() == 0 ? 0 : 1;
}

}  // namespace oriel_internal::test

int main(int count, char** words) { return oriel_internal::test::soak(count, words); }
