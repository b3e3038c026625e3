// A team of threads that run a list of operations together.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "os/os.h"

namespace oriel_internal {

/// The caller and size() - 1 workers go through the sections of a run; sync() ends a section. A section
/// waits for the caller and for participating workers, and never for absent ones. A worker whose core is
/// busy misses sections instead of delaying the others. Required work is therefore done in claimed pieces
/// or by the caller, and a worker touches changing data only if present().
///
/// start() creates the threads and the destructor ends them; no other call allocates. Waiting threads spin for
/// a moment and then sleep.
class Pool {
 public:
  static constexpr uint32_t kMaxThreads = 64;
  static constexpr uint32_t kNoPiece = UINT32_MAX >> 1;

  Pool() = default;
  ~Pool() { stop(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// `threads` counts the caller. With `pin`, workers keep to cores other than the caller's. Starting fewer
  /// threads than requested is not an error.
  void start(uint32_t threads, bool pin);
  uint32_t size() const { return size_; }

  /// Runs body(user, thread) on the caller, which is thread 0, and on every worker that comes in time. Returns
  /// when the caller has returned and all participants have finished. All must go through the same sections.
  /// Until its first sync() the body may read data that changes between runs, even if not present().
  void run(void (*body)(void* user, uint32_t thread), void* user);
  /// Between runs: waits for workers that are still in a finished body, which may read its data until then.
  void settle();

  // Call only from a running body.

  /// True if the thread takes part in this section. Always true for thread 0.
  bool present(uint32_t thread) const { return members_[thread].present; }
  /// 0, 1, 2, ... in each section, each number for one thread; kNoPiece for absent threads.
  uint32_t claim(uint32_t thread) {
    const Member& member = members_[thread];
    return member.present
               ? next_piece_[member.section & 1].value.fetch_add(1, std::memory_order_relaxed)
               : kNoPiece;
  }
  /// Ends a section. Threads that are present in a later section see all writes of this one.
  void sync(uint32_t thread);

 private:
  struct Worker {
    Pool* pool = nullptr;
    uint32_t number = 0;
    uint32_t core = UINT32_MAX;  // to pin to
    Thread thread;
  };
  struct Gap {
    char bytes[64];  // keeps writes of different threads out of one cache line
  };
  struct Member {
    uint64_t section = 0;  // section of the body; counts on from run to run
    uint64_t joined = 0;   // section that the thread entered before the body reached it
    bool present = false;
    Gap gap;
  };
  struct Counter {
    std::atomic<uint32_t> value{0};
    Gap gap;
  };

  static void workerMain(void* worker);
  void stop();
  void work(uint32_t thread);
  bool enter(uint64_t section);
  void leave(uint32_t thread, bool last);
  void waitWhile(uint64_t state, uint64_t mask, double spin_ms);
  void wake();

  uint32_t size_ = 1;
  void (*body_)(void* user, uint32_t thread) = nullptr;
  void* user_ = nullptr;
  Worker workers_[kMaxThreads - 1];
  Member members_[kMaxThreads];
  std::mutex mutex_;
  std::condition_variable woken_;
  [[maybe_unused]] Gap gap0_;
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<uint32_t> in_body_{0};  // workers in the body or entering it
  [[maybe_unused]] Gap gap1_;
  std::atomic<uint64_t> state_{0};  // the section and its participants: see pool.cpp
  [[maybe_unused]] Gap gap2_;
  Counter next_piece_[2];  // of even and of odd sections
};

}  // namespace oriel_internal
