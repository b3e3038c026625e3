// The forward pass: the kernels in order, with their inputs and outputs.
#pragma once

#include "plan/memory_layout.h"

namespace oriel_internal {

/// Totals for placing and reading the weights.
struct WeightCounts {
  uint64_t bytes = 0;
  uint64_t largest_group_bytes = 0;  ///< the largest unit of repacking
  uint64_t read_bytes_per_token = 0;
  uint64_t head_read_bytes = 0;  ///< part of these: the output matrix
  uint64_t draft_bytes = 0;      ///< read by a draft model, not in the other counts
  uint64_t adapter_bytes = 0;    ///< part of adapters
};

/// Walks the model once and emits ops, places for weights and their uploads to `plan`. The plan's cache, formats and
/// chunk must be set. If the plan has no lists, only counts.
Status emitSteps(const TensorIndex& tensors, const ModelDesc& model, const Log& log,
                 const ActivationLayout& activations, const IoLayout& io, Plan* plan,
                 WeightCounts* counts);

}  // namespace oriel_internal
