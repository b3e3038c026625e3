// What Oriel keeps about a device lies side by side in one folder.
#pragma once

#include "vulkan/device.h"

namespace oriel {

/// DIR/oriel-VENDOR-DEVICE-UUID.KIND: one file of a kind per device; a new driver or build replaces
/// it. False: the path is too long.
bool makeCachePath(const DeviceCaps& caps, const char* dir, const char* kind, char* path,
                   size_t capacity);

}  // namespace oriel
