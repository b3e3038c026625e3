// Which layers do what: reads a file's counts, windows and scales into kinds of layers.
#pragma once

#include "model/architecture.h"

namespace oriel_internal {

/// Fills in everything of `desc` that says what layers do; counts of the whole model have been read.
Status readLayers(const GgufFile& file, const Architecture& architecture, const Log& log,
                  ModelDesc* desc);

}  // namespace oriel_internal
