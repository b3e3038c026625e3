#include "plan/plan_source.h"

#include <filesystem>
#include <utility>

#include "terminal/terminal.h"

namespace cli {

PlanSource PlanSource::ofFile(std::string path) {
  PlanSource source;
  source.name_ = std::move(path);
  return source;
}

PlanSource PlanSource::ofShape(std::string name, oriel_weight_format weights) {
  PlanSource source;
  source.name_ = std::move(name);
  source.is_shape_ = true;
  source.weights_ = weights;
  return source;
}

oriel_status PlanSource::planTo(const oriel_options& options, oriel_plan* plan) const {
  *plan = {};
  plan->struct_size = sizeof(*plan);
  return is_shape_ ? oriel_plan_shape(name_.c_str(), weights_, &options, plan)
                   : oriel_plan_file(name_.c_str(), &options, plan);
}

oriel_plan PlanSource::plan(const oriel_options& options, const Diagnostics& diagnostics) const {
  oriel_plan plan = {};
  diagnostics.check(planTo(options, &plan), Diagnostics::Blame::kOptions);
  return plan;
}

oriel_speed PlanSource::speed(const CommonOptions& options) const {
  const auto measure = [this](const oriel_options& library_options, oriel_speed* speed) {
    return is_shape_ ? oriel_speed_measure_shape(name_.c_str(), weights_, &library_options, speed)
                     : oriel_speed_measure(name_.c_str(), &library_options, speed);
  };
  return deviceSpeed(options, measure);
}

bool PlanSource::weightsKnown(const oriel_options& options) const {
  oriel_plan plan;
  return !is_shape_ || !tryPlan(options, &plan) || plan.weights_unknown == 0;
}

bool PlanSource::tryPlan(oriel_options options, oriel_plan* plan) const {
  options.log = nullptr;
  return planTo(options, plan) == ORIEL_OK;
}

std::string PlanSource::title() const {
  return oneLine(is_shape_ ? name_ : std::filesystem::u8path(name_).filename().u8string());
}

}  // namespace cli
