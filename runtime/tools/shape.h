// Shared by the tools.h calls that take a known shape's name.
#pragma once

#include "oriel/tools.h"
#include "tools/shape_weights.h"

namespace oriel_internal {

/// Parses "NAME" or "NAME:FORMAT": a known shape and the type of its matrices.
Status readShape(const char* text, const Log& log, const ModelShape** shape, WeightType* type);

}  // namespace oriel_internal
