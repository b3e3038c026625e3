// The layers of a model that guesses for another (ModelDesc::draft), in ops.
#pragma once

#include "plan/op_list.h"

namespace oriel_internal {

/// Where a memory of the target lies.
struct DraftMemory {
  Memory memory;
  BufferRef sides[2];
};

/// Emits the list kDraft, behind the ops that put the token's embedding into the first half of ActivationLayout::draft_in.
/// `memories`: by layer of the draft.
Status emitDraft(const ModelDesc& model, const ActivationLayout& act, const BufferRef& top,
                 const RotationTables& rotations, const DraftMemory* memories, OpList* ops);

}  // namespace oriel_internal
