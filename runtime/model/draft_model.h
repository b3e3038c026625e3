// Draft models: which properties must match the target, and which KV caches of the target the draft reads.
#pragma once

#include "model/architecture.h"
#include "model/tensor_index.h"

namespace oriel_internal {

/// Makes `draft`, from readDraftDesc(), the draft model of `target`. Draft layers that slide read the KV cache of the
/// target's last sliding layer; the others read the target's last full layer. ORIEL_ERROR_FORMAT if the two do not match.
/// Adds the draft's tensors to `tensors` of the target.
Status joinDraft(const ModelDesc& draft, const TensorIndex& draft_tensors, const Log& log,
                 ModelDesc* target, TensorIndex* tensors);

// Encoders: models that read a whole text and return a vector or scores.

/// Call after readLayers(). Sets the text view of the layers and reads the sizes of the heads after them.
Status readEncoder(const GgufFile& file, const Architecture& architecture, const Log& log,
                   ModelDesc* desc);

}  // namespace oriel_internal
