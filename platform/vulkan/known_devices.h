// Known faults of devices and drivers, and the features that Oriel does not use there: docs/drivers.md. The
// self-test detects wrong results. The table covers faults that crash a process or occur too rarely for the test.
#pragma once

#include "vulkan/device_caps.h"

namespace oriel_internal {

/// A row matches a device when all that it names is the device's.
struct KnownDevice {
  uint32_t vendor_id;         ///< 0: any
  uint32_t driver_id;         ///< VkDriverId; 0: any
  VkPhysicalDeviceType type;  ///< VK_PHYSICAL_DEVICE_TYPE_MAX_ENUM: any
  const char* name_part;      ///< of the device's name; "": any
  uint32_t first_driver;      ///< driverVersion, as the driver counts, ...
  uint32_t last_driver;       ///< ... both included
  uint32_t features_off;      ///< featureBit()s
  double most_work;           ///< of a submission, as plan/op.h counts; 0: any
  bool refused;               ///< the device is not used at all
  const char* reason;         ///< "WHAT HAPPENS"
  const char* source;         ///< who says so
};

/// The features that matching rows turn off, except those in `enabled` (readOverrideNames).
struct KnownFaults {
  uint32_t features_off = 0;
  double most_work = 0;
  bool refused = false;
  char text[320] = "";  ///< what, why and by whose word, for people; "": no row matches
};

extern const KnownDevice kKnownDevices[];
extern const uint32_t kKnownDeviceCount;

/// Of `caps` its ids, type, name and version.
bool matches(const KnownDevice& row, const DeviceCaps& caps);
KnownFaults findFaults(const KnownDevice* rows, uint32_t count, const DeviceCaps& caps,
                       uint32_t enabled);

}  // namespace oriel_internal
