// How fast a plan will run: measured rates of a device (oriel_speed) times the work of a step. Pure.
//
// A roofline would take the slower of bytes / bandwidth and operations / compute. Rates measured with the
// library's own kernels already are the slower of the two, for each type of weights and each pair of cache
// formats, so that times just add up; what they add up from is reported (oriel_step_cost).
#pragma once

#include <cstdint>

#include "budget/kv_shape.h"
#include "gguf/gguf.h"
#include "oriel/oriel.h"
#include "plan/plan.h"

namespace oriel {

/// Types of matrices that one model can mix; more are rare, and then nothing is predicted.
constexpr uint32_t kMaxWorkTypes = 8;

/// What a step has to do, independent of window and formats.
struct WorkShape {
  struct Matrices {
    uint32_t tensor_type = 0;   ///< as the file numbers it
    uint64_t body_weights = 0;  ///< multiplied with every token
    uint64_t head_weights = 0;  ///< multiplied only where logits are wanted
  };
  Matrices matrices[kMaxWorkTypes];
  uint32_t n_matrices = 0;
  bool known = false;  ///< false: too many types, or weights that are not described
  uint32_t n_ops[kStepLists] = {};
  uint32_t n_heads = 0;
  KvShape kv;

  void add(uint32_t tensor_type, uint64_t body, uint64_t head);
};

/// Matrices by the tensors of the file.
WorkShape workOf(const GgufFile& file, const ModelDesc& model, const KvShape& kv,
                 const PlanTotals& totals);

/// Cost of a step of one token (chunk 0) or of a chunk of so many, with these formats. False when the
/// device's rates do not cover a type of weights.
bool stepCost(const oriel_speed& speed, const WorkShape& work, const CacheFormats& formats,
              uint32_t chunk, oriel_step_cost* cost);

/// Seconds of one step whose tokens see `depth` tokens each.
double stepSeconds(const oriel_step_cost& cost, double depth);

oriel_kv_format publicFormat(KvFormat format);

/// False for rates that no measurement can give: not finite, negative, counts out of range.
bool validSpeed(const oriel_speed& speed);

}  // namespace oriel
