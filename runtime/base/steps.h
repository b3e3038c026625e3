// A work limit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/stop_check.h"

namespace oriel_internal {

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
