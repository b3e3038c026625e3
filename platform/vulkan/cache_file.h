// What Oriel keeps about a device lies side by side in one folder, each file behind the same header.
#pragma once

#include "vulkan/device.h"

namespace oriel_internal {

/// DIR/oriel-VENDOR-DEVICE-UUID.KIND: one file of a kind per device; a new driver or build replaces
/// it. False: the path is too long.
bool makeCachePath(const DeviceCaps& caps, const char* dir, const char* kind, char* path,
                   size_t capacity);

/// The device, the driver and the kernels that a file was written with. It is compared as bytes with that of now: a file
/// with any other is as good as none.
struct CacheHeader {
  char magic[8];
  uint32_t version;
  uint32_t detail;        ///< the kind's own: what else has to be the same
  uint64_t shaders_hash;  ///< of all SPIR-V in this build
  uint32_t vendor_id;
  uint32_t device_id;
  uint32_t driver_version;
  uint32_t divided_as_gpu;  ///< tests only
  uint8_t device_uuid[VK_UUID_SIZE];
  uint8_t pipeline_cache_uuid[VK_UUID_SIZE];
};
static_assert(sizeof(CacheHeader) == 72, "no padding: compared and hashed as bytes");

CacheHeader cacheHeader(const DeviceCaps& caps, const char (&magic)[8], uint32_t version,
                        uint32_t detail);

}  // namespace oriel_internal
