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
/// Every case of the tests that have more than an ordinary run has time for: the environment's ORIEL_TEST_ALL
/// (scripts/test.sh --all sets it).
inline bool allCases() { return std::getenv("ORIEL_TEST_ALL") != nullptr; }

}  // namespace oriel::test
