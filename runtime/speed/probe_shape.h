// Synthetic layers that represent a model's.
#pragma once

#include "speed/probe_file.h"

namespace oriel_internal {

/// The model's shape with every matrix in this type, and a limited output matrix. Widths are rounded up to the type's
/// blocks, and halved if one layer takes more than `layer_bytes`. False for an unknown type.
bool shapeOfType(const ProbeShape& model, uint32_t tensor_type, uint64_t layer_bytes,
                 uint64_t head_bytes, ProbeShape* shape);

/// Number of its layers that fit in `bytes`; at least one.
uint32_t layersWithin(const ProbeShape& shape, uint64_t bytes);

}  // namespace oriel_internal
