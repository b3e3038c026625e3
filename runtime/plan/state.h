// A layer's recurrent state as ops: what goes into it, the state itself, what is made of what it gives.
#pragma once

#include "plan/op_list.h"

namespace oriel_internal {

/// Emits what a layer's state, which lies in `memory`, adds to `out` for the rows `in`.
Status emitState(uint32_t layer, const LayerKind& kind, const BufferRef& memory,
                 const ActivationLayout& activations, const Rows& in, const Rows& out,
                 const ModelDesc& model, OpList* ops);

}  // namespace oriel_internal
