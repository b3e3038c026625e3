// A team of threads that walk through a list of operations together.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "os/thread.h"

namespace oriel {

/// The caller and size() - 1 workers. Between two sync() calls of all of them the team shares out
/// pieces of one operation by claim(). Threads are made by start and ended by the destructor; nothing else
/// allocates. Whoever waits spins for a moment and then sleeps.
class Pool {
 public:
  static constexpr uint32_t kMaxThreads = 64;

  Pool() = default;
  ~Pool() { stop(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// `threads` counts the caller. With `pin`, workers keep to cores other than the caller's. Fewer threads
  /// than asked for, when the system refuses some, is no error.
  void start(uint32_t threads, bool pin);
  uint32_t size() const { return size_; }

  /// body(user, thread) on every thread of the team, the caller being thread 0; returns when all have
  /// returned.
  void run(void (*body)(void* user, uint32_t thread), void* user);

  // Of a running body only.

  /// 0, 1, 2, ...: each number to one thread, from 0 again after each sync().
  uint32_t claim() { return next_piece_.fetch_add(1, std::memory_order_relaxed); }
  /// Waits for all threads of the team; what any wrote before is seen by all afterwards.
  void sync();

 private:
  struct Worker {
    Pool* pool = nullptr;
    uint32_t number = 0;
    uint32_t core = UINT32_MAX;  // to pin to
    Thread thread;
  };
  struct Gap {
    char bytes[64];  // keeps what different threads write out of one cache line
  };

  static void workerMain(void* worker);
  void stop();
  void waitWhile(const std::atomic<uint32_t>& value, uint32_t old, double spin_ms);
  void release(std::atomic<uint32_t>* value, uint32_t next);

  uint32_t size_ = 1;
  void (*body_)(void* user, uint32_t thread) = nullptr;
  void* user_ = nullptr;
  bool stopping_ = false;
  Worker workers_[kMaxThreads - 1];
  std::mutex mutex_;
  std::condition_variable woken_;
  Gap gap0_;
  std::atomic<uint32_t> sleepers_{0};
  Gap gap1_;
  std::atomic<uint32_t> runs_{0};  // one more with each run(): workers wait for it
  Gap gap2_;
  std::atomic<uint32_t> phase_{0};  // one more with each sync()
  Gap gap3_;
  std::atomic<uint32_t> arrived_{0};
  Gap gap4_;
  std::atomic<uint32_t> next_piece_{0};
  Gap gap5_;
};

}  // namespace oriel
