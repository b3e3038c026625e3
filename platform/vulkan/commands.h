// Helpers for recording command buffers.
#pragma once

#include "vulkan/device.h"

namespace oriel_internal {

constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
constexpr VkPipelineStageFlags kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkPipelineStageFlags kIndirect = VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
constexpr VkAccessFlags kShaderUse = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;

/// Makes writes (`written`) of the stages `from` visible to accesses (`used`) of the stages `to`.
void recordBarrier(const VulkanApi& api, VkCommandBuffer commands, VkPipelineStageFlags from,
                   VkAccessFlags written, VkPipelineStageFlags to, VkAccessFlags used);
Status beginCommands(const VulkanDevice& device, VkCommandBuffer commands,
                     VkCommandBufferUsageFlags flags, const Log& log);
Status endCommands(const VulkanDevice& device, VkCommandBuffer commands, const Log& log);

}  // namespace oriel_internal
