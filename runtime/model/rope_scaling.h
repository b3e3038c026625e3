// Scaled RoPE of a file, reduced to tables of divisors.
#pragma once

#include "gguf/gguf.h"
#include "model/architecture.h"

namespace oriel_internal {

/// Fills in bases, scaling and factors of rotations, but not the layers without RoPE. Needs the counts and
/// checked tensors. ORIEL_ERROR_FORMAT if numbers or factors are missing, not positive or not finite;
/// ORIEL_ERROR_UNSUPPORTED for unknown kinds of scaling.
Status readRope(const GgufFile& file, const Architecture& architecture, const TensorIndex& tensors,
                const Log& log, ModelDesc* desc);

}  // namespace oriel_internal
