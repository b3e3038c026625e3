// Descriptor sets of a plan's kernels: one layout for all kernels and one set per op, written
// once for the present arenas.
#pragma once

#include "vulkan/step_commands.h"

namespace oriel_internal {

class Bindings {
 public:
  Status createLayouts(const VulkanDevice& device, const Log& log);
  VkPipelineLayout layout() const { return pipeline_layout_; }
  /// Makes the sets and texel views of all ops with kernels, list after list, and stores them in `handles`. After
  /// a failure `handles` hold the objects that were made.
  Status createSets(const VulkanDevice& device, const DeviceArenas& arenas, const Plan& plan,
                    const Log& log, OpHandles* handles);
  /// Before their arenas are freed; createSets() makes new ones. Having none is not an error.
  void releaseSets(const VulkanDevice& device);
  void release(const VulkanDevice& device);

 private:
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout pipeline_layout_ = VK_NULL_HANDLE;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
};

}  // namespace oriel_internal
