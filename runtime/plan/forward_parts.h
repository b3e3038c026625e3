// Parts of the forward pass as ops: latent attention, experts, states, and draft models.
#pragma once

#include "plan/op_list.h"

namespace oriel_internal {

// Latent attention as ops: maps every head's query to the space of latents and the result back.

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

// Mixtures of experts as ops of a plan.

/// Input rows of a layer's experts.
struct ExpertRows {
  Rows routed;  ///< the router's input; zero columns: the scores are already computed
  Rows in;
  Rows out;
  Write write = Write::kAdd;
};

Status emitExperts(uint32_t layer, const ModelDesc& model, const ActivationLayout& activations,
                   const IoLayout& io, const ExpertRows& rows, OpList* ops);
/// Emits the experts' ops and writes the results to the columns of `out`.
Status emitValueExperts(uint32_t layer, const LayerKind& kind, const ActivationLayout& activations,
                        const IoLayout& io, const Rows& in, const Rows& out, OpList* ops);

// A layer's recurrent state as ops: its inputs, the state, and its outputs.

/// Emits the ops that add the output of the layer's state in `memory` to `out`, for the rows `in`.
Status emitState(uint32_t layer, const LayerKind& kind, const BufferRef& memory,
                 const ActivationLayout& activations, const Rows& in, const Rows& out,
                 const ModelDesc& model, OpList* ops);

// The layers of a draft model (ModelDesc::draft) as ops.

/// The place of a memory of the target model.
struct DraftMemory {
  Memory memory;
  BufferRef sides[2];
};

/// Emits the list kDraft. The caller first emits the ops that write the token's embedding to the first half of
/// ActivationLayout::draft_in. `memories`: one per layer of the draft model.
Status emitDraft(const ModelDesc& model, const ActivationLayout& act, const BufferRef& top,
                 const RotationTables& rotations, const DraftMemory* memories, OpList* ops);

}  // namespace oriel_internal
