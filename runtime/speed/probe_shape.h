// Which made-up layers stand for a model's.
#pragma once

#include "speed/probe_file.h"

namespace oriel_internal {

/// The model's shape with every matrix in this type, and an output matrix of at most so many bytes: widths
/// are rounded up where the type's blocks want it, and halved where one layer takes more than `layer_bytes`.
/// False for a type that is not known.
bool shapeOfType(const ProbeShape& model, uint32_t tensor_type, uint64_t layer_bytes,
                 uint64_t head_bytes, ProbeShape* shape);

/// How many of its layers take at most so many bytes; at least one.
uint32_t layersWithin(const ProbeShape& shape, uint64_t bytes);

}  // namespace oriel_internal
