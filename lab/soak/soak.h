// A soak: the app's memory, kinds of models, the log of calls, and the random conversations.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <initializer_list>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "faults/file_faults.h"
#include "oriel/advanced.h"
#include "oriel/oriel.h"
#include "support/gguf_writer.h"
#include "support/options.h"

namespace oriel_internal::test {

// The soak's side of the library's interface: the app's memory, which may refuse, and structs with struct_size.

/// The app's memory: live bytes, and when to refuse.
struct Memory {
  uint64_t live_bytes = 0;
  uint32_t refuse_in = 0;  // calls; 0: never
  oriel_allocator table = {&Memory::allocate, &Memory::release, this};

  static void* allocate(size_t bytes, void* user) {
    Memory* self = static_cast<Memory*>(user);
    if (self->refuse_in > 0 && --self->refuse_in == 0) {
      return nullptr;
    }
    self->live_bytes += bytes;
    return alignedBlock(bytes);
  }
  static void release(void* block, size_t bytes, void* user) {
    static_cast<Memory*>(user)->live_bytes -= bytes;
    freeAligned(block);
  }
};

inline uint64_t residentPages() {
  uint64_t all = 0;
  uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident;
}

template <typename Struct>
Struct sized() {
  Struct value = {};
  value.struct_size = sizeof(value);
  return value;
}

// The models of the soak in order, with their options.

struct SoakKind {
  const char* name;
  const char* model;  ///< a file in the source tree, or a family of random models
  void (*set)(Options*);
  bool constrained = false;  ///< replies may be constrained
  bool forgets = false;      ///< evicted text may be forgotten
};

inline constexpr char kSoakPrompt[] = "You are a kind assistant. Tell the truth.";
inline constexpr char kBundled[] = "models/oriel-tiny/oriel-tiny-q8_0.gguf";

inline constexpr SoakKind kSoakKinds[] = {
    {"plain", kBundled, [](Options*) {}},
    {"low-bit", kBundled, [](Options* options) { options->set("kv", "k8v4"); }},
    {"recall", kBundled, [](Options* options) { options->set("retrieval", 512u << 10); }},
    {"prefix", kBundled, [](Options* options) { options->system_prompt = kSoakPrompt; }},
    {"guesses", kBundled,
     [](Options* options) {
       options->sessions = 1;
       options->set("speculate", 4);
     }},
    {"sliding", "tests/data/models/gemma3.gguf", [](Options*) {}},
    {"sliding-shared", "gemma4", [](Options*) {}},
    {"convolutions", "tests/data/models/lfm2-q4_0.gguf", [](Options*) {}, false, true},
    {"states", "qwen35", [](Options* options) { options->set("checkpoints", 2); }, false, true},
    {"states-in-int8", "falcon-h1",
     [](Options* options) {
       options->set("checkpoints", 1);
       options->set("state", "int8");
     },
     false, true},
    {"latents", "deepseek2", [](Options*) {}},
    {"experts-on-file", "tests/data/models/lfm2moe-q4_0.gguf",
     [](Options* options) { options->set("offload", "all"); }, false, true},
    {"forms", "tests/data/models/granite-nope.gguf",
     [](Options* options) { options->set("constraints", true); }, true},
};

// The log of a soak: calls with their results, and checks with their outcome.

class SoakLog {
 public:
  /// `trace`: prints each call before it is made.
  explicit SoakLog(bool trace) : trace_(trace) {}

  uint64_t step = 0;               ///< number of the call
  bool lost = false;               ///< the device is lost and not yet recovered
  std::vector<std::string> lines;  ///< error lines since begin()

  uint64_t failed() const { return failed_; }
  const std::string& last() const { return last_; }  ///< call and status

  /// Names the next operation.
  void begin(const std::string& what) {
    doing_ = what;
    lines.clear();
    if (trace_) {
      std::printf("%llu: %s\n", static_cast<unsigned long long>(step), what.c_str());
      (void)std::fflush(stdout);
    }
  }
  /// Records its result.
  void returned(oriel_status status) {
    ++done_[doing_][status];
    last_ = doing_ + " " + oriel_status_text(status);
    noteLoss(status);
  }
  void noteLoss(oriel_status status) { lost = lost || status == ORIEL_ERROR_DEVICE; }

  void check(const char* what, bool holds, const std::string& detail) {
    ++(holds ? passed_ : failed_);
    if (!holds) {
      std::printf("FAILED in call %llu (%s): %s: %s\n", static_cast<unsigned long long>(step),
                  doing_.c_str(), what, detail.c_str());
      (void)std::fflush(stdout);
    }
  }

  /// Checks that the call's status is in its contract, and that a failure logged one line.
  template <typename Call>
  oriel_status expect(const char* what, std::initializer_list<oriel_status> allowed,
                      const Call& call) {
    begin(what);
    const oriel_status status = call();
    returned(status);
    bool fine = status == ORIEL_OK || (status == ORIEL_ERROR_DEVICE && faultLayer() != nullptr &&
                                       faultLayer()->failed() != 0);
    for (const oriel_status one : allowed) {
      fine = fine || status == one;
    }
    check("status", fine, oriel_status_text(status) + (lines.empty() ? "" : ": " + lines.back()));
    // A lost device is reported once, by the call that finds it.
    const bool silent = status == ORIEL_OK || status == ORIEL_ERROR_CANCELLED || lost;
    check("lines", silent ? lines.empty() || lost : lines.size() == 1,
          std::to_string(lines.size()) + (lines.empty() ? "" : ": " + lines.back()));
    return status;
  }

  void printCalls() const {
    for (const auto& [what, statuses] : done_) {
      std::printf("%-36s", what.c_str());
      for (const auto& [status, count] : statuses) {
        std::printf("  %s %llu", oriel_status_text(status), static_cast<unsigned long long>(count));
      }
      std::printf("\n");
    }
  }
  void printChecks() const {
    std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(passed_),
                static_cast<unsigned long long>(failed_));
  }

 private:
  const bool trace_;
  std::string doing_;
  std::string last_;
  std::map<std::string, std::map<oriel_status, uint64_t>> done_;
  uint64_t passed_ = 0, failed_ = 0;
};

// Random conversations with all models in turn, and their invariants.

inline int keep(const oriel_token_event* event, void* user) {
  static_cast<std::vector<int32_t>*>(user)->push_back(event->id);
  return 0;
}

struct Settings {
  double seconds = 60;
  uint64_t calls = 0;  ///< not 0: this many calls, without a time limit
  uint64_t seed = 1;
  bool trace = false;
  bool vulkan = false;             ///< else the CPU
  const SoakKind* kind = nullptr;  ///< nullptr: all in turn
};

class Soak {
 public:
  Soak(const Settings& settings, const std::string& folder)
      : settings_(settings), folder_(folder), random_(settings.seed), ledger_(settings.trace) {}

  bool run();
  uint64_t failed() const { return ledger_.failed(); }

 private:
  static constexpr uint32_t kSessions = 4;

  // A model and its options.
  // The next kind.
  bool load();
  /// Without sessions, possibly on a lost device.
  void unload();
  bool isFile() const { return std::string(kind_->model).find('/') != std::string::npos; }
  static void log(oriel_log_level level, const char* message, void* user);
  static int tellRead(uint64_t done, uint64_t total, void*);
  SessionOptions sessionOptions() const;

  // Operations (calls.cpp).
  void act();
  void create(oriel_session** session);
  void say(oriel_session* session);
  void reply(oriel_session* session);
  void replyToAll();
  void fork(oriel_session* session);
  void goBack(oriel_session* session);
  void files(oriel_session* session);
  void damaged(oriel_session* session);
  void givenBack();
  nlohmann::json described();  ///< the model
  void withoutMemory(oriel_session* session);
  void loseDevice();
  void recoverAll();
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  std::string someText();
  ReplyOptions someOptions();
  void cut(const oriel_session* session, oriel_status status, const std::vector<int32_t>& shown);
  int32_t lastToken(oriel_session* session);
  template <typename Call>
  oriel_status cancelledNowAndThen(oriel_session* session, const char* what,
                                   std::initializer_list<oriel_status> allowed, const Call& call) {
    if (below(4) != 0 || settings_.calls != 0) {
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

  // Invariants (checks.cpp).
  void look();
  /// A session that is saved and restored into another continues there with the same words.
  void compareWithTwin();
  void endAll();
  void printIds();
  oriel_stats stats(oriel_session* session);
  std::vector<uint8_t> saved(oriel_session* session);
  std::vector<int32_t> continuation(oriel_session* session);

  const Settings settings_;
  const std::string folder_;
  std::mt19937_64 random_;
  SoakLog ledger_;
  Memory memory_;
  const SoakKind* kind_ = nullptr;
  uint32_t n_loaded_ = 0;
  uint32_t n_sessions_ = kSessions;
  oriel_model* model_ = nullptr;
  oriel_plan plan_ = {};
  oriel_session* sessions_[kSessions] = {};
  std::map<const oriel_session*, int32_t> last_shown_;  ///< from replies that lost their device
  std::set<const oriel_session*> read_again_;           ///< when the device was lost
  uint32_t split_turns_ = 0;                            ///< of every session
  uint32_t forgets_ = 0;
  uint64_t twins_ = 0, rest_bytes_ = 0;
  uint64_t warm_pages_ = 0, early_pages_ = 0, late_pages_ = 0;
  uint32_t early_loads_ = 0;  ///< in the first half
};

}  // namespace oriel_internal::test
