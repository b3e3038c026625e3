// What can be planned for without a device: a file, or a published model by its shape.
#pragma once

#include <string>

#include <oriel/tools.h>

#include "model_handle.h"

namespace cli {

class PlanSource {
 public:
  static PlanSource ofFile(std::string path);
  static PlanSource ofShape(std::string name, oriel_weight_format weights);

  /// Throws Failure; a plan that does not fit is none.
  oriel_plan plan(const oriel_options& options, const Diagnostics& diagnostics) const;
  oriel_speed speed(const CommonOptions& options) const;
  /// False: of a shape whose matrices are not known, so that no speed can be predicted.
  bool weightsKnown(const oriel_options& options) const;
  /// Silent: false when such a plan is not possible.
  bool tryPlan(oriel_options options, oriel_plan* plan) const;

  bool isShape() const { return is_shape_; }
  /// The shape's name, or the file's without its folders.
  std::string title() const;
  /// As it was given.
  const std::string& name() const { return name_; }

 private:
  oriel_status planTo(const oriel_options& options, oriel_plan* plan) const;

  std::string name_;
  bool is_shape_ = false;
  oriel_weight_format weights_ = ORIEL_WEIGHTS_DEFAULT;
};

/// Whether what is planned fits: all of the model, or the rest of a shape whose weights are not described.
inline bool plannedFits(const oriel_plan& plan) {
  return plan.weights_unknown != 0 ? plan.total_bytes <= plan.memory_bytes : plan.fits != 0;
}
inline bool plannedFits(const oriel_plan& plan, const oriel_plan_choice& choice) {
  return plan.weights_unknown != 0 ? choice.total_bytes <= plan.memory_bytes : choice.fits != 0;
}
/// Least memory of that.
inline uint64_t leastOf(const oriel_plan& plan, const oriel_plan_choice& choice) {
  return plan.weights_unknown != 0 ? choice.total_bytes : choice.minimum_bytes;
}

}  // namespace cli
