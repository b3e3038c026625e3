// Reads a file's counts, windows and scales into kinds of layers.
#pragma once

#include "model/architecture.h"

namespace oriel_internal {

/// Fills in the layer fields of `desc`. The model-wide counts must be set.
Status readLayers(const GgufFile& file, const Architecture& architecture, const Log& log,
                  ModelDesc* desc);

}  // namespace oriel_internal
