// Random conversations with all models in turn, and their invariants.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "oriel/advanced.h"
#include "soak/app.h"
#include "soak/kinds.h"
#include "soak/ledger.h"

namespace oriel_internal::test {

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
  Ledger ledger_;
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
