// A mixture of experts as ops: the router, the sorting of its routes, the experts' matrices, their sum.
#pragma once

#include "plan/op_list.h"

namespace oriel_internal {

/// Emits what a layer's experts add to `out` for the rows `in`.
Status emitExperts(uint32_t layer, const LayerKind& kind, const ActivationLayout& activations,
                   const IoLayout& io, const Rows& in, const Rows& out, OpList* ops);

}  // namespace oriel_internal
