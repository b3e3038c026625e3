// Mixtures of experts as ops of a plan.
#pragma once

#include "plan/op_list.h"

namespace oriel_internal {

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

}  // namespace oriel_internal
