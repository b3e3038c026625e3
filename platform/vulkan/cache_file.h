// The header of Oriel's cache files for a device. All files are in one folder and share this header.
#pragma once

#include "vulkan/device.h"

namespace oriel_internal {

/// DIR/oriel-VENDOR-DEVICE-UUID.KIND: one file per kind and device; a new driver or build replaces
/// it. False: the path is too long.
bool makeCachePath(const DeviceCaps& caps, const char* dir, const char* kind, char* path,
                   size_t capacity);

/// The device, the driver and the kernels that wrote a file. It is compared bytewise with the present ones; a file
/// with a different header is ignored.
struct CacheHeader {
  char magic[8];
  uint32_t version;
  uint32_t detail;        ///< by kind: a further value that must match
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
