// Latent attention as ops: maps every head's query to the space of latents and the result back.
#pragma once

#include "plan/op_list.h"

namespace oriel_internal {

/// The buffers of a layer of latent attention, in addition to its input.
struct LatentPlaces {
  const ActivationLayout& activations;
  const RotationTables& rotations;
  Memory memory;
  BufferRef side;
};

/// Emits a layer's attention to `in`, up to activations.attended.
Status emitLatentAttention(uint32_t layer, const ModelDesc& model, const LatentPlaces& places,
                           const Rows& in, OpList* ops);

}  // namespace oriel_internal
