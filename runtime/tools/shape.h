// What the calls of tools.h that take the name of a known shape share.
#pragma once

#include "oriel/tools.h"
#include "tools/shape_weights.h"

namespace oriel_internal {

/// A known shape and the type of its matrices, by "NAME" or "NAME:FORMAT".
Status readShape(const char* text, const Log& log, const ModelShape** shape, WeightType* type);

}  // namespace oriel_internal
