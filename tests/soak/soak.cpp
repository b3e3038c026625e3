// Random conversations for as long as one likes: chats, cancels, forks, trims, saves, and faults of memory, files and
// devices, with one kind of model after the other (kinds.h). After each call it is checked that what is held adds up;
// every now and then, that a session which was saved and restored goes on like the one it came from, and that nothing is
// left when all sessions have ended.
//
//   oriel_soak [--seconds N] [--seed N] [--device cpu | vulkan=ICD] [--layer FOLDER] [--kind NAME]
//              [--trace 1]     says each call before it is made
//
// Ends with what was done and "N passed, N failed"; a failed check is said at once, with the number of the call.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "faults/vulkan_faults.h"
#include "oriel/sessions.h"
#include "soak/app.h"
#include "soak/kinds.h"
#include "soak/ledger.h"
#include "support/random_families.h"

namespace oriel::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint32_t kSessions = 4;
constexpr uint32_t kTwinEvery = 40;
constexpr uint32_t kAllEndEvery = 100;
constexpr uint32_t kKindEvery = 200;

int keep(const oriel_token_event* event, void* user) {
  static_cast<std::vector<int32_t>*>(user)->push_back(event->id);
  return 0;
}

struct Settings {
  double seconds = 60;
  uint64_t seed = 1;
  bool trace = false;
  oriel_device_kind device = ORIEL_DEVICE_CPU;
  const SoakKind* kind = nullptr;  ///< nullptr: all, in turns
};

class Soak {
 public:
  Soak(const Settings& settings, const std::string& folder)
      : settings_(settings), folder_(folder), random_(settings.seed), ledger_(settings.trace) {}

  bool run() {
    const auto begin = Clock::now();
    const auto elapsed = [&] {
      return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    bool loaded = load();
    while (loaded && elapsed() < settings_.seconds) {
      ++ledger_.step;
      act();
      look();
      if (ledger_.step % kTwinEvery == 0) {
        compareWithTwin();
      }
      if (ledger_.step % kAllEndEvery == 0) {
        endAll();
      }
      if (ledger_.step % kKindEvery == 0) {
        unload();
        const uint64_t pages = residentPages();
        // What the C library and the driver keep for later is there after the first quarter.
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
    // Shorter ones end before the C library has all that it keeps for later, and slow devices before every kind has been
    // there in the first half.
    const uint32_t kinds = settings_.kind != nullptr ? 1 : std::size(kSoakKinds);
    if (settings_.seconds >= 300 && early_loads_ >= 2 * kinds && early_pages_ != 0 &&
        late_pages_ != 0) {
      ledger_.check("resident memory is flat", late_pages_ <= early_pages_,
                    std::to_string(early_pages_) + " pages at most in the second quarter, " +
                        std::to_string(late_pages_) + " in the second half");
    }
    ledger_.printCalls();
    std::printf(
        "%llu calls, %llu twins, resident pages %llu, then %llu, then %llu\n",
        static_cast<unsigned long long>(ledger_.step), static_cast<unsigned long long>(twins_),
        static_cast<unsigned long long>(warm_pages_), static_cast<unsigned long long>(early_pages_),
        static_cast<unsigned long long>(late_pages_));
    ledger_.printChecks();
    return loaded;
  }
  uint64_t failed() const { return ledger_.failed(); }

 private:
  /// The next kind.
  bool load() {
    kind_ =
        settings_.kind != nullptr ? settings_.kind : &kSoakKinds[n_loaded_ % std::size(kSoakKinds)];
    ++n_loaded_;
    oriel_options options = sized<oriel_options>();
    options.device = settings_.device;
    options.memory_bytes = 96u << 20;
    options.window_tokens = 128;
    options.chunk_tokens = 32;
    options.sessions = kSessions;
    options.transcript_bytes = 16384;
    options.recall_dir = folder_.c_str();
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

  // With no session left, on a device that is lost maybe.
  void unload() {
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

  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  static void log(oriel_log_level level, const char* message, void* user) {
    if (level == ORIEL_LOG_ERROR) {
      static_cast<Soak*>(user)->ledger_.lines.emplace_back(message);
    }
  }

  // ---- What is done ------------------------------------------------------------------------------

  void act() {
    if (ledger_.lost) {
      recoverAll();
      return;
    }
    oriel_session*& session = sessions_[below(n_sessions_)];
    if (session == nullptr) {
      if (below(3) == 0) {
        create(&session);
      }
      return;
    }
    const uint32_t what = below(100);
    if (what < 28) {
      say(session);
    } else if (what < 56) {
      reply(session);
    } else if (what < 62) {
      replyToAll();
    } else if (what < 68) {
      fork(session);
    } else if (what < 72) {
      oriel_session_destroy(session);
      session = nullptr;
    } else if (what < 78) {
      goBack(session);
    } else if (what < 84) {
      files(session);
    } else if (what < 88) {
      damaged(session);
    } else if (what < 92) {
      givenBack();
    } else if (what < 95) {
      withoutMemory(session);
    } else if (what < 97) {
      (void)ledger_.expect("reset", {}, [&] { return oriel_session_reset(session); });
    } else {
      loseDevice();
    }
  }

  // The same for all that there are at a time: a session goes on as its twin only where both split turns, or neither.
  oriel_session_options sessionOptions() const {
    oriel_session_options options = sized<oriel_session_options>();
    options.split_turns = split_turns_;
    options.forget_evicted = kind_->forgets && split_turns_ == 0 ? forgets_ : 0;
    options.progress = settings_.trace ? tellRead : nullptr;
    return options;
  }

  // Families of random models have no format of their own.
  oriel_chat_options chatOptions() const {
    oriel_chat_options chat = sized<oriel_chat_options>();
    chat.chat_template = isFile() ? nullptr : "plain";
    return chat;
  }
  bool isFile() const { return std::string(kind_->model).find('/') != std::string::npos; }

  static int tellRead(uint64_t done, uint64_t total, void*) {
    std::printf("    %llu of %llu tokens\n", static_cast<unsigned long long>(done),
                static_cast<unsigned long long>(total));
    (void)std::fflush(stdout);
    return 0;
  }

  void create(oriel_session** session) {
    oriel_session_options options = sessionOptions();
    const oriel_chat_options chat = chatOptions();
    options.chat = &chat;
    (void)ledger_.expect("create", {},
                         [&] { return oriel_session_create(model_, &options, session); });
  }

  std::string someText() {
    static const char* const kWords[] = {"the", "cat", "of", "Rome", "tells",
                                         "why", "7",   "\n", "sea,", "\xc3\xa9t\xc3\xa9"};
    std::string text;
    for (uint32_t n = below(20) == 0 ? 400 : 1 + below(12); n > 0; --n) {
      text += kWords[below(10)];
      text += ' ';
    }
    return text;
  }

  void say(oriel_session* session) {
    std::string text = someText();
    const bool broken = below(12) == 0;
    if (broken) {
      text.insert(text.size() / 2, "\xff");
    }
    const uint64_t before = stats(session).position;
    const oriel_status status = cancelledNowAndThen(
        session, "chat_add", {ORIEL_ERROR_CANCELLED, ORIEL_ERROR_TEXT},
        [&] { return oriel_chat_add(session, "user", text.data(), text.size()); });
    if (broken) {
      ledger_.check("text that is none is refused",
                    status == ORIEL_ERROR_TEXT || status == ORIEL_ERROR_DEVICE,
                    oriel_status_text(status));
      ledger_.check("and nothing was read of it", ledger_.lost || stats(session).position == before,
                    "");
    }
  }

  oriel_generate_options someOptions() {
    oriel_generate_options options = sized<oriel_generate_options>();
    options.max_tokens = 1 + below(24);
    options.greedy = below(2);
    options.seed = 1 + below(1000);
    options.temperature = 1.5f;
    options.repeat_penalty = below(2) == 0 ? 0 : 1.1f;
    options.ignore_stop = below(2);
    options.draft = below(2) == 0 ? ORIEL_DRAFT_ALWAYS : ORIEL_DRAFT_AUTO;
    if (kind_->constrained && below(3) == 0) {
      static const char kSchema[] =
          R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x","y"]}}})";
      options.json_schema = kSchema;
      options.json_schema_bytes = sizeof(kSchema) - 1;
    }
    return options;
  }

  void reply(oriel_session* session) {
    if (below(4) != 0) {
      say(session);
    }
    const oriel_generate_options options = someOptions();
    std::vector<int32_t> ids;
    const uint64_t before = stats(session).position;
    const oriel_status status = cancelledNowAndThen(
        session, "reply", {ORIEL_ERROR_CANCELLED, ORIEL_ERROR_STATE},
        [&] { return oriel_chat_reply(session, &options, keep, &ids, nullptr); });
    cut(session, status, ids);
    ledger_.check("a reply is part of the session",
                  status != ORIEL_OK || stats(session).position >= before + ids.size(), "");
    ledger_.check("and has the tokens that were asked for", ids.size() <= options.max_tokens + 1,
                  std::to_string(ids.size()));
  }

  void replyToAll() {
    const oriel_generate_options options = someOptions();
    std::vector<oriel_reply> replies;
    std::vector<int32_t> shown[kSessions];
    for (oriel_session* session : sessions_) {
      if (session != nullptr) {
        say(session);
        oriel_reply one = sized<oriel_reply>();
        one.session = session;
        one.options = &options;
        one.on_token = keep;
        one.user = &shown[replies.size()];
        replies.push_back(one);
      }
    }
    ledger_.begin("reply_many");
    const oriel_status status = oriel_reply_many(replies.data(), replies.size());
    ledger_.returned(status);
    for (size_t i = 0; i < replies.size(); ++i) {
      const oriel_reply& one = replies[i];
      cut(one.session, one.status, shown[i]);
      ledger_.noteLoss(one.status);
      ledger_.check("status",
                    one.status == ORIEL_OK || one.status == ORIEL_ERROR_STATE || ledger_.lost,
                    oriel_status_text(one.status));
    }
  }

  template <typename Call>
  oriel_status cancelledNowAndThen(oriel_session* session, const char* what,
                                   std::initializer_list<oriel_status> allowed, const Call& call) {
    if (below(4) != 0) {
      return ledger_.expect(what, allowed, call);
    }
    const auto after = std::chrono::microseconds(below(20000));
    std::thread other([&] {
      std::this_thread::sleep_for(after);
      oriel_session_cancel(session);
    });
    const oriel_status status = ledger_.expect(what, allowed, call);
    other.join();
    return status;
  }

  void fork(oriel_session* session) {
    for (uint32_t i = 0; i < n_sessions_; ++i) {
      oriel_session*& free = sessions_[i];
      if (free == nullptr) {
        (void)ledger_.expect("fork", {}, [&] { return oriel_session_fork(session, &free); });
        return;
      }
    }
    oriel_session* none = nullptr;
    const oriel_status status = ledger_.expect("fork", {ORIEL_ERROR_STATE},
                                               [&] { return oriel_session_fork(session, &none); });
    ledger_.check("more sessions than there are places are refused", status != ORIEL_OK, "");
  }

  void goBack(oriel_session* session) {
    const uint64_t position = stats(session).position;
    switch (below(3)) {
      case 0:
        (void)ledger_.expect("mark", {}, [&] { return oriel_session_mark(session, "here"); });
        return;
      case 1:
        (void)ledger_.expect("return", {ORIEL_ERROR_ARGUMENT, ORIEL_ERROR_CONTEXT},
                             [&] { return oriel_session_return(session, "here", below(2)); });
        return;
      default: {
        const uint32_t flags = below(2);
        const oriel_status status = ledger_.expect("rewind_turns", {ORIEL_ERROR_CONTEXT}, [&] {
          return oriel_session_rewind_turns(session, 1 + below(2), flags);
        });
        if (flags == ORIEL_READ_AGAIN && status == ORIEL_ERROR_DEVICE) {
          read_again_.insert(session);
        }
        // Text that is read again may have more tokens than the model wrote it in.
        ledger_.check(
            "going back goes back",
            (flags & ORIEL_READ_AGAIN) != 0 || stats(session).position <= position,
            std::to_string(position) + ", then " + std::to_string(stats(session).position));
      }
    }
  }

  void files(oriel_session* session) {
    if (below(8) == 0) {
      const std::string nowhere = folder_ + "/none/at/all";
      const oriel_status status =
          ledger_.expect("save_file where there is no folder", {ORIEL_ERROR_IO},
                         [&] { return oriel_session_save_file(session, nowhere.c_str()); });
      ledger_.check("is refused", status == ORIEL_ERROR_IO || ledger_.lost,
                    oriel_status_text(status));
      return;
    }
    const std::string path = folder_ + "/" + kind_->name + std::to_string(below(3));
    if (below(2) == 0 || !std::filesystem::exists(path)) {
      (void)ledger_.expect("save_file", {},
                           [&] { return oriel_session_save_file(session, path.c_str()); });
    } else {
      // Of a session that split its turns otherwise, maybe, or another place of the sampler's: any session takes it.
      (void)ledger_.expect("restore_file", {},
                           [&] { return oriel_session_restore_file(session, path.c_str()); });
    }
  }

  std::vector<uint8_t> saved(oriel_session* session) {
    size_t needed = 0;
    (void)oriel_session_save(session, nullptr, 0, &needed);
    std::vector<uint8_t> bytes(needed);
    const oriel_status status = oriel_session_save(session, bytes.data(), bytes.size(), &needed);
    bytes.resize(status == ORIEL_OK ? needed : 0);
    ledger_.noteLoss(status);
    return bytes;
  }

  void damaged(oriel_session* session) {
    const std::vector<uint8_t> before = saved(session);
    if (before.empty()) {
      return;
    }
    std::vector<uint8_t> bytes = before;
    if (below(2) == 0) {
      bytes.resize(below(static_cast<uint32_t>(bytes.size())));
    } else {
      bytes[below(static_cast<uint32_t>(bytes.size()))] ^= static_cast<uint8_t>(1u << below(8));
    }
    const oriel_status status =
        ledger_.expect("restore of what is damaged",
                       {ORIEL_ERROR_FORMAT, ORIEL_ERROR_UNSUPPORTED, ORIEL_ERROR_ARGUMENT},
                       [&] { return oriel_session_restore(session, bytes.data(), bytes.size()); });
    ledger_.check("is refused", status != ORIEL_OK, "");
    const std::vector<uint8_t> after = saved(session);
    ledger_.check("the session is as it was", ledger_.lost || after == before, "");
  }

  void givenBack() {
    const oriel_trim_level level = static_cast<oriel_trim_level>(1 + below(4));
    const char* const folder = level == ORIEL_TRIM_CACHE ? folder_.c_str() : nullptr;
    if (below(3) == 0) {
      (void)ledger_.expect("pause", {}, [&] { return oriel_pause(model_); });
    }
    // Conversations with parts that are no messages cannot be built again.
    if (ledger_.expect("trim", {ORIEL_ERROR_STATE},
                       [&] { return oriel_trim(model_, level, folder); }) == ORIEL_OK) {
      oriel_resident resident = sized<oriel_resident>();
      (void)oriel_model_get_resident(model_, &resident);
      ledger_.check("what stays is what was said", resident.total_bytes <= plan_.trim_bytes[level],
                    std::to_string(resident.total_bytes));
    }
    if (ledger_.expect("resume", {}, [&] { return oriel_resume(model_, nullptr, nullptr); }) ==
        ORIEL_ERROR_DEVICE) {
      read_again_.insert(std::begin(sessions_), std::end(sessions_));
    }
  }

  void withoutMemory(oriel_session* session) {
    memory_.refuse_in = 1 + below(6);
    const std::string path = folder_ + "/" + kind_->name + std::to_string(below(3));
    switch (below(3)) {
      case 0:
        (void)ledger_.expect("save_file without memory", {ORIEL_ERROR_OUT_OF_MEMORY},
                             [&] { return oriel_session_save_file(session, path.c_str()); });
        break;
      case 1:
        if (std::filesystem::exists(path)) {
          (void)ledger_.expect("restore_file without memory", {ORIEL_ERROR_OUT_OF_MEMORY},
                               [&] { return oriel_session_restore_file(session, path.c_str()); });
        }
        break;
      default: {
        const std::string word(3000, 'x');
        (void)ledger_.expect("chat_add without memory", {ORIEL_ERROR_OUT_OF_MEMORY}, [&] {
          return oriel_chat_add(session, "user", word.data(), word.size());
        });
      }
    }
    memory_.refuse_in = 0;
  }

  // The next submission, or one of the next, finds the device lost.
  void loseDevice() {
    if (faultLayer() != nullptr) {
      faultLayer()->fail("vkQueueSubmit", 1 + below(30), -4, 0);
    }
  }

  void recoverAll() {
    if (faultLayer() != nullptr) {
      faultLayer()->clear();
    }
    if (std::all_of(std::begin(sessions_), std::end(sessions_),
                    [](const oriel_session* session) { return session == nullptr; })) {
      create(&sessions_[0]);
    }
    for (oriel_session* session : sessions_) {
      if (session == nullptr) {
        continue;
      }
      const uint64_t position = stats(session).position;
      oriel_recover_options options = sized<oriel_recover_options>();
      options.device = ORIEL_DEVICE_VULKAN;
      oriel_recovered result = sized<oriel_recovered>();
      (void)ledger_.expect("recover", {},
                           [&] { return oriel_session_recover(session, &options, &result); });
      const uint64_t now = stats(session).position;
      const bool has_last = now == position + 1 && last_shown_.count(session) != 0 &&
                            lastToken(session) == last_shown_[session];
      // What was being read again when the device went is read whole.
      const bool reads_on = now > position && read_again_.count(session) != 0;
      ledger_.check("a session that was recovered is where it was",
                    now == position || has_last || reads_on,
                    std::to_string(now) + " and " + std::to_string(position));
    }
    last_shown_.clear();
    read_again_.clear();
    ledger_.lost = false;
  }

  // A reply that loses its device has shown one token more than were read, at most; recovery reads that one.
  void cut(const oriel_session* session, oriel_status status, const std::vector<int32_t>& shown) {
    if (status == ORIEL_ERROR_DEVICE && !shown.empty()) {
      last_shown_[session] = shown.back();
    }
  }

  int32_t lastToken(oriel_session* session) {
    int32_t id = -1;
    size_t count = 0;
    const oriel_status status =
        oriel_session_get_tokens(session, stats(session).position - 1, &id, 1, &count);
    return status == ORIEL_OK && count == 1 ? id : -1;
  }

  // ---- What has to hold --------------------------------------------------------------------------

  oriel_stats stats(oriel_session* session) {
    oriel_stats stats = sized<oriel_stats>();
    (void)oriel_session_get_stats(session, &stats);
    return stats;
  }

  void look() {
    for (oriel_session* session : sessions_) {
      if (session == nullptr) {
        continue;
      }
      const oriel_stats is = stats(session);
      oriel_view view = sized<oriel_view>();
      (void)oriel_session_get_view(session, &view);
      size_t ids = 0;
      (void)oriel_session_get_tokens(session, 0, nullptr, 0, &ids);
      ledger_.check("the window is not longer than it may be", is.window_used <= is.window_capacity,
                    "");
      ledger_.check("what is allocated is what was planned",
                    is.device_bytes + is.host_bytes <= plan_.total_bytes,
                    std::to_string(is.device_bytes + is.host_bytes));
      // A message that was taken back may have overwritten what the newest token saw.
      ledger_.check("what is seen is there",
                    view.position == is.position && view.first_stored <= view.position &&
                        view.first_visible <= view.position,
                    std::to_string(view.first_visible));
      ledger_.check("what was evicted is not held",
                    is.evicted + is.window_used <= is.position + is.window_capacity, "");
    }
  }

  std::vector<int32_t> continuation(oriel_session* session) {
    oriel_generate_options options = sized<oriel_generate_options>();
    options.max_tokens = 12;
    options.greedy = 1;
    options.ignore_stop = 1;
    std::vector<int32_t> ids;
    const oriel_status status = oriel_session_generate(session, &options, keep, &ids, nullptr);
    cut(session, status, ids);
    ledger_.noteLoss(status);
    return ids;
  }

  /// A session that is saved, and restored into another, goes on there in the same words.
  void compareWithTwin() {
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
    oriel_session_options options = sessionOptions();
    const oriel_chat_options chat = chatOptions();
    options.chat = &chat;
    const oriel_status made = oriel_session_create(model_, &options, twin);
    ledger_.noteLoss(
        made);  // of a device that loseDevice() has taken from the next call that asks for it
    if (made != ORIEL_OK) {
      ledger_.check("a twin can be made", ledger_.lost, oriel_model_last_error(model_));
      return;
    }
    const std::vector<uint8_t> bytes = saved(session);
    if (!bytes.empty()) {
      const oriel_status status = oriel_session_restore(*twin, bytes.data(), bytes.size());
      ledger_.noteLoss(status);
      const std::vector<int32_t> here = continuation(session);
      const std::vector<int32_t> there = continuation(*twin);
      ledger_.check("a twin goes on in the same words",
                    ledger_.lost || (status == ORIEL_OK && here == there),
                    oriel_status_text(status));
      ++twins_;
    }
    oriel_session_destroy(*twin);
    *twin = nullptr;
  }

  void endAll() {
    ledger_.begin("the end of all sessions");
    for (oriel_session*& session : sessions_) {
      oriel_session_destroy(session);
      session = nullptr;
    }
    split_turns_ = below(2);
    forgets_ = below(2);
    // A model whose device is lost has given back what a session is needed to take again.
    if (!ledger_.lost && rest_bytes_ == 0) {
      rest_bytes_ = memory_.live_bytes;
    }
    ledger_.check(
        "memory is what it was", ledger_.lost || memory_.live_bytes == rest_bytes_,
        std::to_string(memory_.live_bytes) + " bytes, before " + std::to_string(rest_bytes_));
    if (ledger_.lost) {
      create(&sessions_[0]);  // whoever recovers the device
    }
  }

  const Settings settings_;
  const std::string folder_;
  std::mt19937_64 random_;
  Ledger ledger_;
  Memory memory_;
  const SoakKind* kind_ = nullptr;
  uint32_t n_loaded_ = 0;
  uint32_t n_sessions_ = kSessions;
  oriel_model* model_ = nullptr;
  oriel_plan plan_ = {};
  oriel_session* sessions_[kSessions] = {};
  std::map<const oriel_session*, int32_t> last_shown_;  ///< by replies that lost their device
  std::set<const oriel_session*> read_again_;           ///< when the device was lost
  uint32_t split_turns_ = 0;                            ///< of every session
  uint32_t forgets_ = 0;
  uint64_t twins_ = 0, rest_bytes_ = 0;
  uint64_t warm_pages_ = 0, early_pages_ = 0, late_pages_ = 0;
  uint32_t early_loads_ = 0;  ///< in the first half
};

}  // namespace

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
      settings.device = ORIEL_DEVICE_VULKAN;
      const std::string icd = value.substr(value.find('=') + 1);
      ::setenv("VK_ICD_FILENAMES", icd.c_str(), 1);
      ::setenv("VK_DRIVER_FILES", icd.c_str(), 1);
    }
  }
  if (settings.device == ORIEL_DEVICE_VULKAN && !layer.empty() &&
      loadFaultLayer(layer) == nullptr) {
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

}  // namespace oriel::test

int main(int count, char** words) { return oriel::test::soak(count, words); }
