// Mixtures of experts as ops of a plan.
#pragma once

#include "plan/op_list.h"

namespace oriel_internal {

/// Rows that a layer's experts work on.
struct ExpertRows {
  Rows routed;  ///< what the router reads; of no columns: its scores are there
  Rows in;
  Rows out;
  Write write = Write::kAdd;
};

Status emitExperts(uint32_t layer, const ModelDesc& model, const ActivationLayout& activations,
                   const IoLayout& io, const ExpertRows& rows, OpList* ops);
/// Values made by experts, to the columns of `out`.
Status emitValueExperts(uint32_t layer, const LayerKind& kind, const ActivationLayout& activations,
                        const IoLayout& io, const Rows& in, const Rows& out, OpList* ops);

}  // namespace oriel_internal
