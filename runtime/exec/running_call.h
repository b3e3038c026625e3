// A cancel that applies to one call only.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/log.h"
#include "exec/session_context.h"
#include "os/os.h"

namespace oriel_internal {

/// Calls run one after the other, on any thread. Any thread may cancel. One word holds the number of the running call
/// and its cancel flag. A cancel that comes after the end of its call has no effect, because the next call has another
/// word.
class CallCancel {
 public:
  void begin() { word_.store((word_.load() & ~kFlags) + kNextCall + kRunning); }
  void end() { word_.store(word_.load() & ~kFlags); }
  /// No effect if no call runs.
  void cancel() {
    uint32_t seen = word_.load();
    if ((seen & kFlags) == kRunning) {
      // Fails if the call has ended or another thread has cancelled it.
      (void)word_.compare_exchange_strong(seen, seen | kCancelled);
    }
  }
  /// Lasts until the end of the call.
  bool cancelled() const { return (word_.load(std::memory_order_relaxed) & kCancelled) != 0; }

 private:
  static constexpr uint32_t kRunning = 1;
  static constexpr uint32_t kCancelled = 2;
  static constexpr uint32_t kFlags = kRunning | kCancelled;
  static constexpr uint32_t kNextCall = 4;

  std::atomic<uint32_t> word_{0};  // the number of the latest call, and the flags
};

// The amount of work in a submission. A device cannot be interrupted within a submission: a cancelled call waits for
// it, and watchdogs of phones end the process.

/// Target for the longest submission, in milliseconds. Two are in flight at a time, so a cancelled call waits for up to
/// twice that.
constexpr double kSubmissionMs = 40;

/// Learns the device's work per kSubmissionMs from submissions. Work is counted as in plan/op.h.
class Pace {
 public:
  Pace() = default;
  /// `most_work`: upper limit for a submission; 0: none.
  explicit Pace(double most_work) : most_work_(most_work != 0 ? most_work : kMostWork) {
    work_ = std::min(work_, most_work_);
  }

  /// The current limit for a submission.
  double work() const { return work_; }

  /// Records that a submission of `work` finished `ms` after it could begin.
  void took(double work, double ms) {
    if (ms > kSubmissionMs) {
      // Reduces by half at most, because the delay may come from the processor.
      const double in_time = work * kSubmissionMs / ms;
      work_ = std::max({std::min(work_, in_time), work_ / 2, kLeastWork});
    } else if (ms < kSubmissionMs / 2 && work > work_ / 2) {
      work_ = std::min(work_ * 2, most_work_);
    }
  }

 private:
  /// Initial limit: a device with 1 billion multiply-adds per second finishes it in time.
  static constexpr double kFirstWork = 1 << 25;
  static constexpr double kLeastWork = 1 << 20;
  static constexpr double kMostWork = 1e15;

  double most_work_ = kMostWork;
  double work_ = kFirstWork;
};

// The running call of a session: its cancel and its progress.
//
// It knows: the app's cancel, its progress callback, rests of the device, limits on heat.
// It must never know: tokens, memory, replies.

/// Calls come from one thread at a time. cancel() and cancelled() are allowed from any thread.
class RunningCall {
 public:
  explicit RunningCall(const SessionContext& context) : context_(context) {}

  /// Call around every call: cancel() applies to the running call, and progress restarts with each.
  void begin() {
    done_ = total_ = 0;
    cancel_.begin();
  }
  void end() { cancel_.end(); }
  void cancel() { cancel_.cancel(); }
  bool cancelled() const { return cancel_.cancelled(); }
  /// ORIEL_ERROR_CANCELLED, except during work that must be completed.
  Status check() const {
    return cancelled() && !finishes ? Status(ORIEL_ERROR_CANCELLED) : Status(kOk);
  }
  /// cancelled(), for work that checks repeatedly.
  StopCheck stop() const {
    return {[](void* self) { return static_cast<const RunningCall*>(self)->cancelled(); },
            const_cast<RunningCall*>(this)};
  }
  /// The same for a step; never cancelled for work that must not stop half-way.
  StopCheck stopOfStep() const { return finishes ? StopCheck() : stop(); }

  bool wantsRest() const {
    return context_.guard != nullptr && context_.guard->wantsRest() && !finishes;
  }
  /// Waits until the app resumes or the call is cancelled.
  void rest() const {
    context_.guard->rest(
        [](const void* self) { return static_cast<const RunningCall*>(self)->cancelled(); }, this);
  }
  // The limits on heat (SessionSettings::max_tokens_per_s and duty).

  /// Counts device work of a step.
  void worked(double ms) {
    if (context_.duty < 1) {
      cool_at_ms_ = std::max(cool_at_ms_, nowMs() + ms * (1 / context_.duty - 1));
    }
  }
  /// Counts a written token.
  void wrote() {
    if (context_.max_tokens_per_s > 0) {
      next_token_ms_ = std::max(next_token_ms_, nowMs()) + 1000 / context_.max_tokens_per_s;
      cool_at_ms_ = std::max(cool_at_ms_, next_token_ms_);
    }
  }
  bool isHot() const { return cool_at_ms_ != 0 && !finishes && nowMs() < cool_at_ms_; }
  /// Waits until the session may work again, the call is cancelled or the app wants a rest.
  void coolDown() const {
    constexpr double kLookMs = 20;
    while (isHot() && !cancelled() && !wantsRest()) {
      sleepMs(std::min(kLookMs, cool_at_ms_ - nowMs()));
    }
  }

  /// For a call that was cancelled while it rested and must undo its work: waits for the device.
  void waitForDevice() const {
    if (wantsRest()) {
      context_.guard->rest([](const void*) { return false; }, nullptr);
    }
  }

  /// Adds tokens to read. Recovered tokens were counted before.
  void expect(uint64_t tokens) { total_ += recovers ? 0 : tokens; }
  /// Sets the number of tokens still to read.
  void expectAgain(uint64_t tokens) { total_ = done_ + tokens; }
  /// Reports progress to the app, which may cancel.
  void read(uint32_t tokens) {
    done_ += tokens;
    if (context_.progress != nullptr &&
        context_.progress(done_, total_, context_.progress_user) != 0) {
      cancel();
    }
  }

  bool finishes = false;  ///< the work must finish, even after a cancel
  bool recovers = false;  ///< the memory is rebuilt: tokens are not new
  bool replays = false;   ///< from the held ids

  /// Totals since the session began.
  struct Counts {
    uint64_t submissions = 0;
    uint64_t read_again = 0;  ///< tokens
  } counts;

 private:
  const SessionContext& context_;
  CallCancel cancel_;
  double cool_at_ms_ = 0;
  double next_token_ms_ = 0;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

}  // namespace oriel_internal
