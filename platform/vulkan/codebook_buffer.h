// The codebooks of the IQ2 and IQ3 types, as kernels read them. Like the kernels' code they lie beside the plan's
// arenas: 5 KiB, and only where a plan has such weights.
#pragma once

#include "vulkan/device.h"

namespace oriel {

class CodebookBuffer {
 public:
  /// Also after a failure release() gives back what was taken.
  Status create(const VulkanDevice& device, const Plan& plan, const Log& log);
  void release(const VulkanDevice& device);
  /// False: the op's kernel reads none.
  bool of(const Op& op, VkDescriptorBufferInfo* info) const;

 private:
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
};

}  // namespace oriel
