// The header of Oriel's cache files for a device. All files are in one folder and share this header.
#pragma once

#include "base/scratch.h"
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

// Compiled pipelines on disk. Drivers trust the data that they get, so a file is checked first: magic,
// version, hash, shaders, device and driver. An invalid file is ignored and replaced, and so is a file
// that crashed the driver (driver_watch.h). Errors here never fail a load; in the worst case
// pipelines are compiled again.

class PipelineCache {
 public:
  /// Creates the cache. Reads a valid file in `dir` (null: no file) into
  /// `workspace`.
  Status create(const VulkanDevice& device, const char* dir, Workspace* workspace, const Log& log);
  /// Writes the file if pipelines were added, and if it fits into `scratch` (any host memory).
  void save(const VulkanDevice& device, void* scratch, uint64_t scratch_bytes, const Log& log);
  void release(const VulkanDevice& device);

  VkPipelineCache handle() const { return cache_; }
  /// The place of a crash during compilation with this cache.
  DriverPlace place() const {
    return loaded_bytes_ != 0 ? DriverPlace::kKeptKernels : DriverPlace::kCompile;
  }

 private:
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  char path_[1024] = "";       // empty: no file
  uint64_t loaded_bytes_ = 0;  // payload bytes of a valid file
};

/// Removes a device's cache, because its driver crashed.
void dropKeptKernels(const DeviceCaps& caps, const char* dir, const Log& log);

}  // namespace oriel_internal
