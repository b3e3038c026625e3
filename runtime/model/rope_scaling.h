// Scaled RoPE as files describe it, reduced to tables of divisors.
#pragma once

#include "gguf/gguf.h"
#include "model/architecture.h"

namespace oriel_internal {

/// Fills in everything about rotations but which layers have none: bases, scaling, factors. Needs the
/// counts, and tensors that were checked. ORIEL_ERROR_FORMAT for numbers and factors that are missing or
/// not positive and finite, ORIEL_ERROR_UNSUPPORTED for kinds of scaling that are not known.
Status readRope(const GgufFile& file, const Architecture& architecture, const TensorIndex& tensors,
                const Log& log, ModelDesc* desc);

}  // namespace oriel_internal
