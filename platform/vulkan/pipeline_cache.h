// Compiled pipelines on disk. Drivers trust the data that they get, so a file is checked first: magic,
// version, hash, shaders, device and driver. An invalid file is ignored and replaced, and so is a file
// that crashed the driver (driver_watch.h). Errors here never fail a load; in the worst case
// pipelines are compiled again.
#pragma once

#include "base/workspace.h"
#include "vulkan/device.h"

namespace oriel_internal {

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
