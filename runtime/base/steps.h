// Cancellation of running work.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/log.h"
#include "oriel/advanced.h"

namespace oriel_internal {

/// Long work calls it repeatedly, on the thread that started the work.
struct StopCheck {
  bool (*asked)(void* user) = nullptr;  ///< null: never
  void* user = nullptr;

  bool operator()() const { return asked != nullptr && asked(user); }
  /// ORIEL_ERROR_CANCELLED if the check asks to stop.
  Status check() const { return (*this)() ? Status(ORIEL_ERROR_CANCELLED) : kOk; }
};

/// Progress of a load, for the app's callback.
struct LoadProgress {
  oriel_progress_fn callback = nullptr;
  void* user = nullptr;
  uint64_t done = 0;
  uint64_t total = 1;  ///< an estimate, until `done` grows

  /// Calls the callback; ORIEL_ERROR_CANCELLED if it asks to stop.
  Status tell() const {
    return callback != nullptr && callback(done, total, user) != 0 ? Status(ORIEL_ERROR_CANCELLED)
                                                                   : kOk;
  }
  /// The same for work without a count. This object must outlive it.
  StopCheck stop() {
    return {[](void* self) { return !static_cast<const LoadProgress*>(self)->tell().ok(); }, this};
  }
};

// A work limit.

/// One step takes a nanosecond or two: following an edge of an automaton, or copying or comparing a byte. After the last
/// step, or after a stop, all work that spends steps ends.
class Steps {
 public:
  static constexpr uint64_t kBetweenLooks = 1 << 20;

  Steps() = default;
  /// Checks `stop` at the first step and every `between_looks` steps.
  Steps(uint64_t most, const StopCheck& stop, uint64_t between_looks = kBetweenLooks)
      : stop_(stop), most_steps_(most), between_looks_(between_looks) {}

  /// The limit.
  uint64_t mostSteps() const { return most_steps_; }
  /// False if the limit is reached or the work was stopped.
  bool spend(uint64_t steps) {
    steps_ += steps;
    return steps_ < next_look_ || look();
  }
  bool ended() const { return end_ != End::kNot; }
  bool stopped() const { return end_ == End::kStopped; }
  uint64_t steps() const { return steps_; }
  uint64_t left() const { return ended() || steps_ >= most_steps_ ? 0 : most_steps_ - steps_; }
  const StopCheck& stop() const { return stop_; }

 protected:
  void raise(uint64_t most) {
    most_steps_ = most;
    next_look_ = std::min(next_look_, steps_);
  }

 private:
  enum class End : uint8_t { kNot, kTooMuch, kStopped };

  bool look() {
    if (end_ == End::kNot && stop_()) {
      end_ = End::kStopped;
    }
    if (end_ == End::kNot && steps_ > most_steps_) {
      end_ = End::kTooMuch;
    }
    next_look_ = ended() ? 0 : std::min(steps_ + between_looks_, most_steps_ + 1);
    return !ended();
  }

  StopCheck stop_;
  uint64_t steps_ = 0;
  uint64_t most_steps_ = UINT64_MAX - 1;
  uint64_t between_looks_ = kBetweenLooks;
  uint64_t next_look_ = 0;
  End end_ = End::kNot;
};

}  // namespace oriel_internal
