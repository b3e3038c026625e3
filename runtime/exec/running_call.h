// The running call of a session: its cancel and its progress.
//
// It knows: the app's cancel, its progress callback, rests of the device, limits on heat.
// It must never know: tokens, memory, replies.
#pragma once

#include <algorithm>

#include "base/status.h"
#include "exec/call_cancel.h"
#include "exec/session_context.h"
#include "os/os.h"

namespace oriel_internal {

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
