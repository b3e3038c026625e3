// Compiled pipelines kept on disk. Drivers trust what they are handed, so a file is checked first: ours
// (magic, version, hash), for these shaders, this device and this driver. A file that fails is ignored
// and replaced. While the driver opens it a marker lies beside it: a process that finds one that another left
// behind takes it that the driver crashed, and does not hand it the file again. Nothing here can fail a load; the worst is that pipelines are compiled again.
#pragma once

#include "base/workspace.h"
#include "vulkan/device.h"

namespace oriel {

class PipelineCache {
 public:
  /// Makes the cache, from the file in `dir` (null: no file) if there is a good one, which is read into
  /// `workspace`.
  Status create(const VulkanDevice& device, const char* dir, Workspace* workspace, const Log& log);
  /// The driver has made every pipeline: what it was given did it no harm.
  void survived();
  /// Writes the file if something was added, when it fits into `scratch` (any host memory).
  void save(const VulkanDevice& device, void* scratch, uint64_t scratch_bytes, const Log& log);
  void release(const VulkanDevice& device);

  VkPipelineCache handle() const { return cache_; }

 private:
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  char path_[1024] = "";  // empty: no file
  char marker_[1024] = "";
  uint64_t loaded_bytes_ = 0;  // of a good file's payload
  bool marked_ = false;        // the marker says that the driver is at work on the file
};

}  // namespace oriel
