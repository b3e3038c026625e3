// Measured rates in the cache folder: one small file per device, driver, library version and shape. Damaged or foreign
// files are ignored.
#pragma once

#include "base/log.h"
#include "budget/speed.h"

namespace oriel_internal {

/// Looks up speed->device, ->driver and ->shape; on false, *speed is unchanged.
bool readSpeedFile(const char* dir, DeviceSpeed* speed);
/// Write errors are ignored.
void writeSpeedFile(const char* dir, const DeviceSpeed& speed, const Log& log);

}  // namespace oriel_internal
