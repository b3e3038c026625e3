// Which device the device tests run on.
#pragma once

#include <cstdlib>

#include "oriel/oriel.h"
#include "support/patience.h"

namespace oriel::test {

inline oriel_device_kind& targetDeviceSlot() {
  static oriel_device_kind device = ORIEL_DEVICE_CPU;
  return device;
}
inline void setTargetDevice(oriel_device_kind device) { targetDeviceSlot() = device; }
/// Optional Vulkan features that the whole run does without: the environment's ORIEL_DISABLE.
inline const char* disabledFeatures() { return std::getenv("ORIEL_DISABLE"); }
inline oriel_device_kind targetDevice() { return targetDeviceSlot(); }

}  // namespace oriel::test
