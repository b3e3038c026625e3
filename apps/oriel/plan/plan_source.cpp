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

PlanSource PlanSource::ofShape(std::string name, std::string weights) {
  PlanSource source;
  source.name_ = std::move(name);
  source.weights_ = std::move(weights);
  source.is_shape_ = true;
  return source;
}

oriel_status PlanSource::planTo(const oriel::Options& options, Json* plan) const {
  return described(plan, [&](char* json, size_t capacity, size_t* needed) {
    return is_shape_ ? oriel_shape_describe(shape().c_str(), &options, json, capacity, needed)
                     : oriel_plan_describe(name_.c_str(), &options, json, capacity, needed);
  });
}

Json PlanSource::plan(const oriel::Options& options, const Diagnostics& diagnostics) const {
  Json plan;
  diagnostics.check(planTo(options, &plan), Diagnostics::Blame::kOptions);
  return plan;
}

Json PlanSource::tryPlan(oriel::Options options) const {
  options.log = nullptr;
  Json plan;
  (void)planTo(options, &plan);
  return plan;
}

oriel_speed PlanSource::speed(const CommonOptions& options) const {
  return is_shape_ ? deviceSpeed(options, nullptr, shape().c_str())
                   : deviceSpeed(options, name_.c_str(), nullptr);
}

bool PlanSource::weightsKnown(const oriel::Options& options) const {
  const Json plan = is_shape_ ? tryPlan(options) : Json();
  return plan.is_null() || !weightsUnknown(plan);
}

std::string PlanSource::title() const {
  return oneLine(is_shape_ ? name_ : std::filesystem::u8path(name_).filename().u8string());
}

Json knownShapes() {
  Json list;
  (void)described(&list, oriel_shape_list);
  return list.is_null() ? Json::array() : list["shapes"];
}

}  // namespace cli
