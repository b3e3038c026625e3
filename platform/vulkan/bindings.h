// What the kernels of a plan read and write: one layout for all of them, one descriptor set per op, written
// once for the arenas as they are.
#pragma once

#include "vulkan/step_commands.h"

namespace oriel_internal {

class Bindings {
 public:
  Status createLayouts(const VulkanDevice& device, const Log& log);
  VkPipelineLayout layout() const { return pipeline_layout_; }
  /// Sets and texel views of all ops with kernels, to their handles: list after list. Also after a failure `handles`
  /// hold what was made.
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
