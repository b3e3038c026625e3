// Encoders: models that read a whole text and return a vector or scores.
#pragma once

#include "model/architecture.h"

namespace oriel_internal {

/// Call after readLayers(). Sets the text view of the layers and reads the sizes of the heads after them.
Status readEncoder(const GgufFile& file, const Architecture& architecture, const Log& log,
                   ModelDesc* desc);

}  // namespace oriel_internal
