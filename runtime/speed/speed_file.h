// Measured rates in the cache folder: one small file per device, driver, library version and shape. A file that is
// damaged, or somebody else's, is as good as none.
#pragma once

#include "base/log.h"
#include "oriel/oriel.h"

namespace oriel {

/// speed->device, ->driver and ->shape say whose rates are wanted; false leaves the rest as it was.
bool readSpeedFile(const char* dir, oriel_speed* speed);
/// Failing to write is nobody's failure.
void writeSpeedFile(const char* dir, const oriel_speed& speed, const Log& log);

}  // namespace oriel
