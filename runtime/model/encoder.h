// What makes a model one that reads whole texts, for vectors or scores.
#pragma once

#include "model/architecture.h"

namespace oriel_internal {

/// After readLayers(): layers see their text, and the numbers of what comes behind them.
Status readEncoder(const GgufFile& file, const Architecture& architecture, const Log& log,
                   ModelDesc* desc);

}  // namespace oriel_internal
