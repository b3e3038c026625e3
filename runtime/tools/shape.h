// What the calls of tools.h that take the name of a known shape share.
#pragma once

#include "oriel/tools.h"
#include "tools/shape_weights.h"

namespace oriel_internal {

/// A known shape by name, and the type of its matrices.
Status readShape(const char* name, oriel_weight_format weights, const Log& log,
                 const ModelShape** shape, WeightType* type);

}  // namespace oriel_internal
