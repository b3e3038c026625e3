// Ends calls that nobody waits for any more.
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

/// Looks at every watched call some times a second, and cancels it until it has ended: a cancel that comes before its
/// call has begun counts for nothing.
class Watcher {
 public:
  Watcher();
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// While it lives the session's calls are watched. The session and the exchange live at least as long.
  class Guard {
   public:
    Guard(Watcher* watcher, oriel_session* session, const Exchange& client,
          Clock::time_point deadline);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

    /// Why it was cancelled.
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

  /// Cancels all that run and all that begin.
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
