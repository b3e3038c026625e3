// Finds layers whose keys lose too much in low-bit formats, from the weights alone.
#pragma once

#include "kv/cache_layout.h"
#include "model/tensor_index.h"

namespace oriel_internal {

/// Marks layers with extreme key biases or wide key norms in `formats`. A bias is the same in every key, so it carries
/// no information between keys, but it sets the scale for rounding all of a head's values. A norm's weights determine
/// the lengths of keys and queries, and so the effect of rounding on a score.
Status guardKeys(const GgufFile& file, const TensorIndex& tensors, const ModelDesc& model,
                 const Log& log, CacheFormats* formats);

}  // namespace oriel_internal
