#include "vulkan/commands.h"

namespace oriel_internal {

void recordBarrier(const VulkanApi& api, VkCommandBuffer commands, VkPipelineStageFlags from,
                   VkAccessFlags written, VkPipelineStageFlags to, VkAccessFlags used) {
  VkMemoryBarrier memory = {};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = written;
  memory.dstAccessMask = used;
  api.vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

Status beginCommands(const VulkanDevice& device, VkCommandBuffer commands,
                     VkCommandBufferUsageFlags flags, const Log& log) {
  VkCommandBufferBeginInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = flags;
  return checkVk(device.api.vkBeginCommandBuffer(commands, &info), "begin a command buffer", log);
}

Status endCommands(const VulkanDevice& device, VkCommandBuffer commands, const Log& log) {
  return checkVk(device.api.vkEndCommandBuffer(commands), "end a command buffer", log);
}

}  // namespace oriel_internal
