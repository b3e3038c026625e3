// Cancels calls of clients that have left.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include <oriel/oriel.h>

#include "serve/http_server.h"

namespace cli {

enum class Ended { kNot, kClientGone, kTimeout, kStopping };

/// Checks every watched call several times a second, and repeats a cancel until the call ends: a cancel before the call
/// begins has no effect.
class Watcher {
 public:
  Watcher();
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// Watches the session's calls during its lifetime. The session and the exchange must outlive it.
  class Guard {
   public:
    Guard(Watcher* watcher, oriel_session* session, const Exchange& client,
          Clock::time_point deadline);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

    /// The reason of the cancel.
    Ended why() const { return why_; }

   private:
    friend class Watcher;
    void look(bool stopping);

    Watcher& watcher_;
    oriel_session* const session_;
    const Exchange& client_;
    const Clock::time_point deadline_;
    std::atomic<Ended> why_{Ended::kNot};
  };

  /// Cancels all running and future calls.
  void stopAll();

 private:
  void run();

  std::mutex lock_;
  std::condition_variable wake_;
  std::list<Guard*> watched_;
  bool stopping_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace cli
