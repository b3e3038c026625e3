// Which device the device tests run on.
#pragma once


#include "oriel/oriel.h"

namespace oriel::test {

inline oriel_device_kind& targetDeviceSlot() {
  static oriel_device_kind device = ORIEL_DEVICE_CPU;
  return device;
}
inline void setTargetDevice(oriel_device_kind device) { targetDeviceSlot() = device; }
inline oriel_device_kind targetDevice() { return targetDeviceSlot(); }

}  // namespace oriel::test
