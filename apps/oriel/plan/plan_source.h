// What can be planned for without a device: a file, or a published model by its shape.
#pragma once

#include <string>

#include <oriel/tools.h>

#include "model_handle.h"

namespace cli {

class PlanSource {
 public:
  static PlanSource ofFile(std::string path);
  /// `weights`: "q4_0", "q8_0" or "f16"; "": the usual.
  static PlanSource ofShape(std::string name, std::string weights);

  /// As the library describes it (docs/describe.md); a plan that does not fit is one, too. Throws Failure.
  Json plan(const oriel::Options& options, const Diagnostics& diagnostics) const;
  /// Silent: null when such a plan is not possible.
  Json tryPlan(oriel::Options options) const;
  oriel_speed speed(const CommonOptions& options) const;
  /// False: of a shape whose matrices are not known, so that no speed can be predicted.
  bool weightsKnown(const oriel::Options& options) const;

  bool isShape() const { return is_shape_; }
  /// The shape's name, or the file's without its folders.
  std::string title() const;
  /// As it was given.
  const std::string& name() const { return name_; }

 private:
  oriel_status planTo(const oriel::Options& options, Json* plan) const;
  std::string shape() const { return weights_.empty() ? name_ : name_ + ":" + weights_; }

  std::string name_;
  std::string weights_;
  bool is_shape_ = false;
};

/// Of a plan, or of one of its choices, whose weights are not described.
inline bool weightsUnknown(const Json& plan) { return plan.at("fits").is_null(); }
/// Whether what is planned fits `memory_bytes`: all of the model, or the rest of a shape whose weights are not described.
inline bool plannedFits(const Json& plan, uint64_t memory_bytes) {
  return weightsUnknown(plan) ? numberIn(plan, "total_bytes") <= memory_bytes
                              : plan["fits"].get<bool>();
}
inline bool plannedFits(const Json& plan) {
  return plannedFits(plan, numberIn(plan, "memory_bytes"));
}
/// Least memory of that.
inline uint64_t leastOf(const Json& plan) {
  return numberIn(plan, weightsUnknown(plan) ? "total_bytes" : "minimum_bytes");
}

/// The published shapes, as oriel_shape_list has them.
Json knownShapes();

}  // namespace cli
