// The layers of a draft model (ModelDesc::draft) as ops.
#pragma once

#include "plan/op_list.h"

namespace oriel_internal {

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
