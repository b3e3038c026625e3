// The amount of work in a submission. A device cannot be interrupted within a submission: a cancelled call waits for
// it, and watchdogs of phones end the process.
#pragma once

#include <algorithm>

namespace oriel_internal {

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

}  // namespace oriel_internal
