// Latent attention as ops: every head's query is brought to where latents are, and what it sees of them back.
#pragma once

#include "plan/op_list.h"

namespace oriel_internal {

/// What a layer of latent attention works with, beside its input.
struct LatentPlaces {
  const ActivationLayout& activations;
  const RotationTables& rotations;
  Memory memory;
  BufferRef side;
};

/// Emits a layer's attention to `in` as far as activations.attended.
Status emitLatentAttention(uint32_t layer, const ModelDesc& model, const LatentPlaces& places,
                           const Rows& in, OpList* ops);

}  // namespace oriel_internal
