// Known faults of devices and drivers, and the features that Oriel does not use there: docs/devices.md. The
// self-test detects wrong results. The table covers faults that crash a process or occur too rarely for the test.
#pragma once

#include "vulkan/device_caps.h"

namespace oriel_internal {

/// A row matches a device if all its fields match.
struct KnownDevice {
  uint32_t vendor_id;         ///< 0: any
  uint32_t driver_id;         ///< VkDriverId; 0: any
  VkPhysicalDeviceType type;  ///< VK_PHYSICAL_DEVICE_TYPE_MAX_ENUM: any
  const char* name_part;      ///< of the device's name; "": any
  uint32_t first_driver;      ///< driverVersion in the driver's encoding: first ...
  uint32_t last_driver;       ///< ... and last, both included
  uint32_t features_off;      ///< featureBit()s
  double most_work;           ///< limit of a submission, as plan/op.h counts; 0: no limit
  bool refused;               ///< the device is never used
  const char* reason;         ///< "WHAT HAPPENS"
  const char* source;         ///< source of the report
};

/// The restrictions of matching rows, without the features in `enabled` (readOverrideNames).
struct KnownFaults {
  uint32_t features_off = 0;
  double most_work = 0;
  bool refused = false;
  char text[320] = "";  ///< faults, reasons and sources, for people; "": no row matches
};

extern const KnownDevice kKnownDevices[];
extern const uint32_t kKnownDeviceCount;

/// Uses the ids, type, name and version in `caps`.
bool matches(const KnownDevice& row, const DeviceCaps& caps);
KnownFaults findFaults(const KnownDevice* rows, uint32_t count, const DeviceCaps& caps,
                       uint32_t enabled);

}  // namespace oriel_internal
