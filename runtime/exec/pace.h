// How much work a submission may hold. A device that is given too much at once cannot be interrupted: a
// cancelled call waits for it, and the watchdogs of phones end it.
#pragma once

#include <algorithm>

namespace oriel_internal {

/// The longest wanted time of a submission, in milliseconds. Two are in flight at a time, so a call that is cancelled
/// waits for twice that.
constexpr double kSubmissionMs = 40;

/// Learns from submissions how much a device does in kSubmissionMs. Work is counted as in plan/op.h.
class Pace {
 public:
  Pace() = default;
  /// `most_work`: that a submission may ever hold; 0: any.
  explicit Pace(double most_work) : most_work_(most_work != 0 ? most_work : kMostWork) {
    work_ = std::min(work_, most_work_);
  }

  /// The limit of work in a submission.
  double work() const { return work_; }

  /// A submission of `work` finished `ms` after it could begin.
  void took(double work, double ms) {
    if (ms > kSubmissionMs) {
      // At most by half: it may have been the processor that was late.
      const double in_time = work * kSubmissionMs / ms;
      work_ = std::max({std::min(work_, in_time), work_ / 2, kLeastWork});
    } else if (ms < kSubmissionMs / 2 && work > work_ / 2) {
      work_ = std::min(work_ * 2, most_work_);
    }
  }

 private:
  /// So little that a device of 1 billion multiply-adds a second is done in time.
  static constexpr double kFirstWork = 1 << 25;
  static constexpr double kLeastWork = 1 << 20;
  static constexpr double kMostWork = 1e15;

  double most_work_ = kMostWork;
  double work_ = kFirstWork;
};

}  // namespace oriel_internal
