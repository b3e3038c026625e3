// A model that guesses for another: what of it has to agree with its target, and what it reads there.
#pragma once

#include "model/tensor_index.h"

namespace oriel_internal {

/// Makes `draft`, of readDraftDesc(), the model that guesses for `target`: its layers read the memory of the target's last
/// layer that slides, or of the last that does not, as they do themselves. ORIEL_ERROR_FORMAT where the two do not belong
/// together. `tensors`, the target's, gets those of the draft.
Status joinDraft(const ModelDesc& draft, const TensorIndex& draft_tensors, const Log& log,
                 ModelDesc* target, TensorIndex* tensors);

}  // namespace oriel_internal
