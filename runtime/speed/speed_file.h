// Measured rates in the cache folder: one small file per device, driver, library version and shape. A file that is
// damaged, or somebody else's, is as good as none.
#pragma once

#include "base/log.h"
#include "budget/speed.h"

namespace oriel_internal {

/// speed->device, ->driver and ->shape say whose rates are wanted; false leaves the rest as it was.
bool readSpeedFile(const char* dir, DeviceSpeed* speed);
/// Failing to write is nobody's failure.
void writeSpeedFile(const char* dir, const DeviceSpeed& speed, const Log& log);

}  // namespace oriel_internal
