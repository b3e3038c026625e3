// Plans while a slider moves: on a thread of its own, the latest wish first.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "settings.h"
#include "worker.h"

namespace desktop {

struct PlanPreview {
  PlanSettings settings;  ///< that it is for
  bool known = false;     ///< false: nothing was planned yet, or `error` says why it cannot be
  std::string error;
  oriel_plan plan = {};
  /// What the slider spans: the least that works, and what the window takes in f16.
  uint64_t least_bytes = 0;
  uint64_t most_bytes = 0;
};

class Planner {
 public:
  /// `changed` is called on the planner's thread when there is a new preview.
  explicit Planner(std::function<void()> changed);

  void request(const PlanSettings& settings);
  PlanPreview preview() const;
  /// Until what was requested is there.
  void wait() { worker_.wait(); }

 private:
  void plan();

  std::function<void()> changed_;
  mutable std::mutex mutex_;
  PlanSettings wanted_;
  bool asked_ = false;
  PlanPreview preview_;
  Worker worker_;
};

/// One plan, at once.
PlanPreview planNow(const PlanSettings& settings);

}  // namespace desktop
