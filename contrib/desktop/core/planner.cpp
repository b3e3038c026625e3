#include "planner.h"

#include <algorithm>
#include <utility>

#include "last_error.h"

namespace desktop {
namespace {

/// More than any model needs, but far from overflow.
constexpr uint64_t kNoLimitBytes = uint64_t{1} << 46;

uint64_t mostBytes(PlanSettings settings) {
  settings.memory_bytes = kNoLimitBytes;
  if (settings.kv == "auto") {
    settings.kv = "f16";
  }
  const oriel::Options options = libraryOptions(settings);
  oriel_plan plan = ORIEL_PLAN_INIT;
  return oriel_plan_file(settings.model_path.c_str(), &options, &plan) == ORIEL_OK
             ? plan.total_bytes
             : 0;
}

}  // namespace

PlanPreview planNow(const PlanSettings& settings) {
  PlanPreview preview;
  preview.settings = settings;
  LastError last_error;
  oriel::Options options = libraryOptions(settings);
  last_error.listen(&options);
  preview.plan = ORIEL_PLAN_INIT;
  const oriel_status status = oriel_plan_file(settings.model_path.c_str(), &options, &preview.plan);
  preview.known = status == ORIEL_OK;
  if (!preview.known) {
    preview.error = last_error.text(status);
    return preview;
  }
  preview.least_bytes = preview.plan.minimum_bytes;
  preview.most_bytes = std::max(mostBytes(settings), preview.least_bytes);
  return preview;
}

Planner::Planner(std::function<void()> changed) : changed_(std::move(changed)) {}

void Planner::request(const PlanSettings& settings) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    wanted_ = settings;
    if (asked_) {
      return;  // the waiting job uses the new request
    }
    asked_ = true;
  }
  worker_.post([this] { plan(); });
}

void Planner::plan() {
  PlanSettings wanted;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    wanted = wanted_;
    asked_ = false;
  }
  PlanPreview made = planNow(wanted);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    preview_ = std::move(made);
  }
  changed_();
}

PlanPreview Planner::preview() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return preview_;
}

}  // namespace desktop
