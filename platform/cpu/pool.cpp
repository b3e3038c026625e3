#include "cpu/pool.h"

#include <algorithm>

#include "os/os.h"

#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace oriel {
namespace {

constexpr uint32_t kWorkerStackBytes = 256 << 10;  // attention keeps its blocks on the stack
// How long to spin before sleeping: for the rest of the team within a run, and for the next run. A
// sleeper takes some 50 us to wake, as long as a small model's step has operations.
constexpr double kSpinInRunMs = 1.0;
constexpr double kSpinBetweenRunsMs = 0.3;
constexpr uint32_t kPausesPerLook = 32;     // at the clock
constexpr uint32_t kLooksBeforeYield = 16;  // a core with other work to do gets to do it

void pauseProcessor() {
#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

void Pool::start(uint32_t threads, bool pin) {
  const uint32_t wanted = std::min(std::max(threads, 1u), kMaxThreads);
  const uint32_t cores = pin ? allowedCores() : 0;
  const uint32_t callers = pin ? currentCore() : UINT32_MAX;
  const bool room = callers != UINT32_MAX && wanted <= cores;
  // Workers need the final size from their first run on, which is after this call.
  uint32_t started = 1;
  for (uint32_t number = 1; number < wanted; ++number) {
    Worker& worker = workers_[number - 1];
    worker.pool = this;
    worker.number = number;
    worker.core = room ? (callers + number) % cores : UINT32_MAX;
    if (!worker.thread.start(&Pool::workerMain, &worker, kWorkerStackBytes)) {
      break;
    }
    ++started;
  }
  size_ = started;
}

void Pool::stop() {
  stopping_ = true;
  release(&runs_, runs_.load(std::memory_order_relaxed) + 1);
  for (Worker& worker : workers_) {
    worker.thread.join();
  }
}

void Pool::run(void (*body)(void* user, uint32_t thread), void* user) {
  body_ = body;
  user_ = user;
  next_piece_.store(0, std::memory_order_relaxed);
  if (size_ > 1) {
    release(&runs_, runs_.load(std::memory_order_relaxed) + 1);
  }
  body(user, 0);
  sync();
}

void Pool::workerMain(void* self) {
  Worker* worker = static_cast<Worker*>(self);
  Pool* pool = worker->pool;
  if (worker->core != UINT32_MAX) {
    pinToCore(worker->core);
  }
  for (uint32_t seen = 0;; ++seen) {
    pool->waitWhile(pool->runs_, seen, kSpinBetweenRunsMs);
    if (pool->stopping_) {
      return;
    }
    pool->body_(pool->user_, worker->number);
    pool->sync();
  }
}

void Pool::sync() {
  const uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < size_) {
    waitWhile(phase_, phase, kSpinInRunMs);
    return;
  }
  arrived_.store(0, std::memory_order_relaxed);
  next_piece_.store(0, std::memory_order_relaxed);
  release(&phase_, phase + 1);
}

void Pool::waitWhile(const std::atomic<uint32_t>& value, uint32_t old, double spin_ms) {
  double deadline = 0;
  for (uint32_t looks = 0; value.load(std::memory_order_acquire) == old; ++looks) {
    for (uint32_t i = 0; i < kPausesPerLook; ++i) {
      pauseProcessor();
      if (value.load(std::memory_order_acquire) != old) {
        return;
      }
    }
    const double now = nowMs();
    if (looks == 0) {
      deadline = now + spin_ms;
    } else if (now > deadline) {
      break;
    }
    if (looks > kLooksBeforeYield) {
      yieldProcessor();
    }
  }
  if (value.load(std::memory_order_acquire) != old) {
    return;
  }
  // release() stores, then looks for sleepers; this counts itself, then looks at the value: in the one
  // order of sequentially consistent operations at least one of them sees the other.
  std::unique_lock<std::mutex> lock(mutex_);
  sleepers_.fetch_add(1);
  while (value.load() == old) {
    woken_.wait(lock);
  }
  sleepers_.fetch_sub(1);
}

void Pool::release(std::atomic<uint32_t>* value, uint32_t next) {
  value->store(next);
  if (sleepers_.load() > 0) {
    { const std::lock_guard<std::mutex> lock(mutex_); }
    woken_.notify_all();
  }
}

}  // namespace oriel
