// Runs jobs in order on a thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "settings.h"

namespace desktop {

class Worker {
 public:
  Worker();
  /// Waits for the running job and drops the rest.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void post(std::function<void()> job);
  /// Waits until all posted jobs are done. A job must not call this.
  void wait();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread thread_;
};

// Plans on its own thread while a slider moves. Only the latest request counts.

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

// Asks the desktop whether it uses dark colours.

/// Asks on its own thread, since the answer may take a second.
class SystemLook {
 public:
  /// `changed` is called on that thread when the answer changes.
  explicit SystemLook(std::function<void()> changed) : changed_(std::move(changed)) {}
  void ask();
  /// True: dark. Empty: the desktop has not answered.
  std::optional<bool> dark() const;

 private:
  std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::optional<bool> dark_;
  Worker worker_;  // ends before what its jobs use
};

}  // namespace desktop
