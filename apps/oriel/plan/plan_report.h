// A model to plan without a device: a file, or a published model by its shape.
#pragma once

#include <string>
#include <vector>

#include <oriel/tools.h>

#include "model_handle.h"
#include "output.h"

namespace cli {

class PlanSource {
 public:
  static PlanSource ofFile(std::string path);
  /// `weights`: "q4_0", "q8_0" or "f16"; "": the default.
  static PlanSource ofShape(std::string name, std::string weights);

  /// The library's description (docs/reference/describe.md), also of a plan that does not fit. Throws Failure.
  Json plan(const oriel::Options& options, const Diagnostics& diagnostics) const;
  /// Silent: null if such a plan is impossible.
  Json tryPlan(oriel::Options options) const;
  oriel_speed speed(const CommonOptions& options) const;
  /// False for a shape with unknown matrices, whose speed cannot be predicted.
  bool weightsKnown(const oriel::Options& options) const;

  bool isShape() const { return is_shape_; }
  /// The shape's name, or the file's without its folders.
  std::string title() const;
  /// As given.
  const std::string& name() const { return name_; }

 private:
  oriel_status planTo(const oriel::Options& options, Json* plan) const;
  std::string shape() const { return weights_.empty() ? name_ : name_ + ":" + weights_; }

  std::string name_;
  std::string weights_;
  bool is_shape_ = false;
};

/// True if the weights of a plan, or of a choice in it, are unknown.
inline bool weightsUnknown(const Json& plan) { return plan.at("fits").is_null(); }
/// True if the planned part fits `memory_bytes`: the whole model, or a shape without its unknown weights.
inline bool plannedFits(const Json& plan, uint64_t memory_bytes) {
  return weightsUnknown(plan) ? numberIn(plan, "total_bytes") <= memory_bytes
                              : plan["fits"].get<bool>();
}
inline bool plannedFits(const Json& plan) {
  return plannedFits(plan, numberIn(plan, "memory_bytes"));
}
/// Smallest memory for it.
inline uint64_t leastOf(const Json& plan) {
  return numberIn(plan, weightsUnknown(plan) ? "total_bytes" : "minimum_bytes");
}

/// The published shapes from oriel_shape_list.
Json knownShapes();

// A plan as text: bytes by purpose, the choice, and why the alternatives lost.

/// Plans for half, three quarters, one and a half times and twice the memory.
std::vector<Json> neighboursOf(const PlanSource& source, const oriel::Options& options,
                               const Json& plan);

/// `load`: the plan's options. `speed` null: no device was named. `neighbours` adds the windows and losses of the
/// alternatives.
std::string describePlan(const PlanSource& source, const Settings& load, const oriel_speed* speed,
                         const Json& plan, const std::vector<Json>* neighbours);
Json planJson(const PlanSource& source, const Json& plan, const oriel_speed* speed,
              const std::vector<Json>& neighbours);

/// The table of `oriel plan --list`.
std::string describeShapes(const Json& shapes);
Json shapesJson(const Json& shapes);

// A plan as a picture: window against memory for each format, and bytes by purpose.

/// An SVG document. `options` are the options of `plan`. The curves ignore their fixed window and formats.
std::string plotPlan(const PlanSource& source, CommonOptions options, const oriel_speed* speed,
                     const Json& plan);

}  // namespace cli
