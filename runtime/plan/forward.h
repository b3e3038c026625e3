// The forward pass: which kernels run in which order, from where to where.
#pragma once

#include "plan/memory_layout.h"

namespace oriel_internal {

/// What placing and reading the weights comes to.
struct WeightCounts {
  uint64_t bytes = 0;
  uint64_t largest_group_bytes = 0;  ///< of what is repacked at a time
  uint64_t read_bytes_per_token = 0;
  uint64_t head_read_bytes = 0;  ///< of these, the output matrix
  uint64_t draft_bytes = 0;      ///< of a model that guesses: beside the others
  uint64_t adapter_bytes = 0;    ///< of adapters
};

/// Walks the model once and emits ops, places for weights and their uploads to `plan`, whose cache,
/// formats and chunk are set; in one without lists it only counts them.
Status emitSteps(const TensorIndex& tensors, const ModelDesc& model, const Log& log,
                 const ActivationLayout& activations, const IoLayout& io, Plan* plan,
                 WeightCounts* counts);

}  // namespace oriel_internal
