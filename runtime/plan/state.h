// A layer's recurrent state as ops: its inputs, the state, and its outputs.
#pragma once

#include "plan/op_list.h"

namespace oriel_internal {

/// Emits the ops that add the output of the layer's state in `memory` to `out`, for the rows `in`.
Status emitState(uint32_t layer, const LayerKind& kind, const BufferRef& memory,
                 const ActivationLayout& activations, const Rows& in, const Rows& out,
                 const ModelDesc& model, OpList* ops);

}  // namespace oriel_internal
