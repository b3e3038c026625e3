// Finds layers whose keys few bits would ruin, from the weights alone.
#pragma once

#include "kv/cache_layout.h"
#include "model/tensor_index.h"

namespace oriel_internal {

/// Marks layers with extreme key biases or wide key norms in `formats`. A bias is the same in every key, so
/// it carries no information between them, yet it sets the scale that all of a head's values are rounded
/// to. A norm's weights say how long keys and queries are, and so how far rounding moves a score.
Status guardKeys(const GgufFile& file, const TensorIndex& tensors, const ModelDesc& model,
                 const Log& log, CacheFormats* formats);

}  // namespace oriel_internal
