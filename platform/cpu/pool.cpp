#include "cpu/pool.h"

#include <algorithm>

#include "base/test_gap.h"
#include "os/os.h"

#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace oriel_internal {
namespace {

constexpr uint32_t kWorkerStackBytes = 256 << 10;  // attention keeps its blocks on the stack
// Spin times before sleeping: for the rest of the team within a run, and for the next run. Waking a
// sleeper takes about 50 us, as long as operations of a small model's step.
constexpr double kSpinInRunMs = 1.0;
constexpr double kSpinBetweenRunsMs = 0.3;
constexpr uint32_t kPausesPerLook = 32;     // at the clock
constexpr uint32_t kLooksBeforeYield = 16;  // gives the core to other work

// Pool's state: the section in the high bits, the number of workers in it in the lowest.
constexpr uint64_t kInside = 0xFFFF;
constexpr uint64_t kCallerLeft = 1u << 16;  // all pieces are claimed
constexpr uint64_t kLast = 1u << 17;        // of its run, set together with kCallerLeft
constexpr uint64_t kOpen = 1u << 18;        // within a run
constexpr uint64_t kStopping = 1u << 19;
constexpr uint32_t kSectionShift = 20;
constexpr uint64_t kSectionMask = ~uint64_t{0} << kSectionShift;
/// A run begins at a multiple of this. A delayed worker can be many runs late, and must not mistake the section of
/// another run for its own. Numbers therefore repeat only after millions of runs.
constexpr uint32_t kRunBits = 21;
constexpr uint64_t kSectionsPerRun = 1u << kRunBits;
constexpr uint64_t kRunMask = kSectionMask << kRunBits;

constexpr uint64_t sectionOf(uint64_t state) { return state >> kSectionShift; }
constexpr uint64_t firstOfRun(uint64_t section) {
  return section / kSectionsPerRun * kSectionsPerRun;
}

// The state after the last participant has left.
constexpr uint64_t afterSection(uint64_t section, bool last) {
  return last ? (firstOfRun(section) + kSectionsPerRun) << kSectionShift
              : ((section + 1) << kSectionShift) | kOpen;
}

void pauseProcessor() {
#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

void Pool::start(uint32_t threads, bool pin) {
  const uint32_t wanted = std::min(std::max(threads, 1u), kMaxThreads);
  const uint32_t cores = pin ? allowedCores() : 0;
  const uint32_t callers = pin ? currentCore() : UINT32_MAX;
  const bool room = callers != UINT32_MAX && wanted <= cores;
  // Workers need the final size from their first run on, which comes after this call.
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
  state_.fetch_or(kStopping);
  wake();
  for (Worker& worker : workers_) {
    worker.thread.join();
  }
}

void Pool::run(void (*body)(void* user, uint32_t thread), void* user) {
  body_ = body;
  user_ = user;
  Member& caller = members_[0];
  caller.section = sectionOf(state_.load(std::memory_order_relaxed));
  caller.present = true;
  next_piece_[caller.section & 1].value.store(0, std::memory_order_relaxed);
  state_.fetch_or(kOpen);
  wake();
  body(user, 0);
  leave(0, true);
  waitWhile(caller.section << kSectionShift, kSectionMask, kSpinInRunMs);
}

void Pool::workerMain(void* self) {
  Worker* worker = static_cast<Worker*>(self);
  if (worker->core != UINT32_MAX) {
    pinToCore(worker->core);
  }
  worker->pool->work(worker->number);
}

void Pool::work(uint32_t thread) {
  Member& member = members_[thread];
  uint64_t done = kInside;  // the latest finished run; initially none
  for (;;) {
    const uint64_t state = state_.load(std::memory_order_acquire);
    if ((state & kStopping) != 0) {
      return;
    }
    const bool open = (state & kOpen) != 0;
    if ((state & kRunMask) == done) {
      waitWhile(done, kRunMask, kSpinInRunMs);
    } else if (!open || (state & kCallerLeft) != 0) {
      waitWhile(state & ~kInside, ~kInside, open ? kSpinInRunMs : kSpinBetweenRunsMs);
    } else if (in_body_.fetch_add(1); enter(sectionOf(state))) {
      member.joined = sectionOf(state);
      member.section = firstOfRun(member.joined);
      member.present = member.section == member.joined;
      body_(user_, thread);
      if (member.present || member.section < member.joined) {
        leave(thread, false);
      }
      done = (member.joined << kSectionShift) & kRunMask;
      in_body_.fetch_sub(1);
    } else {
      in_body_.fetch_sub(1);
    }
  }
}

void Pool::settle() {
  while (in_body_.load() != 0) {
    yieldProcessor();
  }
}

// False if the section is over, or has no work left.
bool Pool::enter(uint64_t section) {
  uint64_t state = state_.load(std::memory_order_acquire);
  while (sectionOf(state) == section && (state & (kCallerLeft | kOpen)) == kOpen) {
    if (state_.compare_exchange_weak(state, state + 1)) {
      return true;
    }
  }
  return false;
}

void Pool::leave(uint32_t thread, bool last) {
  uint64_t state = state_.load(std::memory_order_acquire);
  for (;;) {
    const uint64_t section = sectionOf(state);
    uint64_t next;
    if (thread == 0) {
      next = (state & kInside) == 0 ? afterSection(section, last)
                                    : state | kCallerLeft | (last ? kLast : 0);
    } else {
      next = (state & (kInside | kCallerLeft)) == (1 | kCallerLeft)
                 ? afterSection(section, (state & kLast) != 0)
                 : state - 1;
    }
    const bool over = sectionOf(next) != section;
    if (over && (next & kOpen) != 0) {
      // Unused now: it belongs to the previous and the next section.
      next_piece_[(section + 1) & 1].value.store(0, std::memory_order_relaxed);
    }
    if (state_.compare_exchange_weak(state, next)) {
      if (over) {
        wake();
      }
      return;
    }
  }
}

void Pool::sync(uint32_t thread) {
  Member& member = members_[thread];
  if (member.present) {
    leave(thread, false);
  }
  waitWhile(member.section << kSectionShift, kSectionMask, kSpinInRunMs);
  if (member.section >= member.joined) {  // in no section, so no thread waits for it
    testGap();
  }
  ++member.section;
  member.present = thread == 0 || member.section == member.joined || enter(member.section);
}

// Waits while the masked bits of the state are unchanged.
void Pool::waitWhile(uint64_t state, uint64_t mask, double spin_ms) {
  const auto same = [this, state, mask](std::memory_order order) {
    return (state_.load(order) & mask) == state;
  };
  double deadline = 0;
  uint32_t looks = 0;
  while (same(std::memory_order_acquire)) {
    for (uint32_t i = 0; i < kPausesPerLook && same(std::memory_order_acquire); ++i) {
      pauseProcessor();
    }
    const double now = nowMs();
    if (deadline == 0) {
      deadline = now + spin_ms;
    } else if (now > deadline) {
      break;
    }
    if (++looks > kLooksBeforeYield) {
      yieldProcessor();
    }
  }
  if (!same(std::memory_order_acquire)) {
    return;
  }
  // A thread that changes the state looks for sleepers afterwards. This thread counts itself first, then looks at
  // the state. In the total order of sequentially consistent operations at least one of them sees the other.
  std::unique_lock<std::mutex> lock(mutex_);
  sleepers_.fetch_add(1);
  while (same(std::memory_order_seq_cst)) {
    woken_.wait(lock);
  }
  sleepers_.fetch_sub(1);
}

void Pool::wake() {
  if (sleepers_.load() > 0) {
    { const std::lock_guard<std::mutex> lock(mutex_); }
    woken_.notify_all();
  }
}

}  // namespace oriel_internal
