// Plans on its own thread while a slider moves. Only the latest request counts.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "settings.h"
#include "worker.h"

namespace desktop {

struct PlanPreview {
  PlanSettings settings;  ///< the planned settings
  bool known = false;     ///< false: not planned yet, or see `error`
  std::string error;
  oriel_plan plan = {};
  /// Range of the slider: the minimum, and the memory of the window in f16.
  uint64_t least_bytes = 0;
  uint64_t most_bytes = 0;
};

class Planner {
 public:
  /// `changed` is called on the planner's thread when there is a new preview.
  explicit Planner(std::function<void()> changed);

  void request(const PlanSettings& settings);
  PlanPreview preview() const;
  /// Waits for the requested plan.
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

/// Makes a plan on the calling thread.
PlanPreview planNow(const PlanSettings& settings);

}  // namespace desktop
