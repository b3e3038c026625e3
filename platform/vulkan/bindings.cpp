#include "vulkan/bindings.h"

#include "plan/codebooks.h"
#include "vulkan/fused_ops.h"

namespace oriel_internal {
namespace {

/// The push-constant range of every kernel; the Vulkan minimum is 128.
constexpr uint32_t kPushBytes = kMakerPushBytes + sizeof(Op::Push);
static_assert(kPushBytes <= 128 && sizeof(Op::Push) <= kMakerPushBytes, "push constants");

VkDescriptorBufferInfo bufferInfo(const DeviceArenas& arenas, const BufferRef& piece) {
  return {arenas.buffer(piece.arena, piece.segment), piece.offset_bytes, piece.size_bytes};
}

// False if the op's kernel reads no codebook.
bool findCodebook(const DeviceArenas& arenas, const Plan& plan, const Op& op,
                  VkDescriptorBufferInfo* info) {
  uint32_t offset_bytes = 0, bytes = 0;
  if (plan.codebooks.size_bytes == 0 || !codebookOf(op.weights, &offset_bytes, &bytes)) {
    return false;
  }
  BufferRef piece = plan.codebooks.resized(bytes);
  piece.offset_bytes += offset_bytes;
  *info = bufferInfo(arenas, piece);
  return true;
}

static_assert(kCodebookBinding == kMaxOpBindings + kMaxTexelViews, "shared with shaders");

void writeSet(const VulkanDevice& device, const DeviceArenas& arenas, const Plan& plan,
              const Op& op, VkDescriptorSet set) {
  VkDescriptorBufferInfo buffers[kMaxOpBindings];
  for (uint32_t i = 0; i < kMaxOpBindings; ++i) {
    // Unused bindings must hold a valid buffer; no shader accesses it.
    buffers[i] = bufferInfo(arenas, i < op.n_bindings ? op.bindings[i] : plan.device_step);
  }
  VkWriteDescriptorSet writes[2] = {};
  writes[0].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
  writes[0].dstSet = set;
  writes[0].descriptorCount = kMaxOpBindings;  // consecutive bindings
  writes[0].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  writes[0].pBufferInfo = buffers;
  VkDescriptorBufferInfo codebook = {};
  const bool has_codebook = findCodebook(arenas, plan, op, &codebook);
  writes[1] = writes[0];
  writes[1].dstBinding = kCodebookBinding;
  writes[1].descriptorCount = 1;
  writes[1].descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
  writes[1].pBufferInfo = &codebook;
  device.api.vkUpdateDescriptorSets(device.device, has_codebook ? 2 : 1, writes, 0, nullptr);
}

}  // namespace

Status Bindings::createLayouts(const VulkanDevice& device, const Log& log) {
  VkDescriptorSetLayoutBinding bindings[kMaxOpBindings + kMaxTexelViews + 1] = {};
  uint32_t n_bindings = kMaxOpBindings + (device.caps.readsTexels() ? kMaxTexelViews : 0);
  for (uint32_t i = 0; i < n_bindings; ++i) {
    bindings[i].binding = i;
    bindings[i].descriptorType = i < kMaxOpBindings ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
                                                    : VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER;
    bindings[i].descriptorCount = 1;
    bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  bindings[n_bindings++] = {kCodebookBinding, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1,
                            VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo set_info = {};
  set_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set_info.bindingCount = n_bindings;
  set_info.pBindings = bindings;
  ORIEL_TRY(checkMade(
      device.api.vkCreateDescriptorSetLayout(device.device, &set_info, nullptr, &set_layout_),
      &set_layout_, "create a descriptor set layout", log));
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  VkPipelineLayoutCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.setLayoutCount = 1;
  info.pSetLayouts = &set_layout_;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  return checkMade(
      device.api.vkCreatePipelineLayout(device.device, &info, nullptr, &pipeline_layout_),
      &pipeline_layout_, "create a pipeline layout", log);
}

Status Bindings::createSets(const VulkanDevice& device, const DeviceArenas& arenas,
                            const Plan& plan, const Log& log, OpHandles* handles) {
  const VulkanApi& api = device.api;
  const uint32_t n_ops = plan.opsBefore(kStepLists) - hostOps(plan);
  if (n_ops == 0) {
    return kOk;
  }
  const VkDescriptorPoolSize sizes[] = {
      {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, n_ops * kMaxOpBindings},
      {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, n_ops},
      {VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, n_ops * kMaxTexelViews}};
  VkDescriptorPoolCreateInfo pool_info = {};
  pool_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  pool_info.maxSets = n_ops;
  pool_info.poolSizeCount = device.caps.readsTexels() ? 3 : 2;
  pool_info.pPoolSizes = sizes;
  ORIEL_TRY(checkMade(api.vkCreateDescriptorPool(device.device, &pool_info, nullptr, &pool_),
                      &pool_, "create a descriptor pool", log));
  for (uint32_t l = 0; l < kStepLists; ++l) {
    for (uint32_t i = 0; i < plan.n_ops[l]; ++i) {
      if (isDoneByHost(plan.ops[l][i])) {
        continue;
      }
      const Op* const maker = makerOf(plan.ops[l], i, handles);
      const Op op = maker != nullptr ? withMaker(plan.ops[l][i], *maker) : plan.ops[l][i];
      VkDescriptorSetAllocateInfo info = {};
      info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
      info.descriptorPool = pool_;
      info.descriptorSetCount = 1;
      info.pSetLayouts = &set_layout_;
      ORIEL_TRY(checkVk(api.vkAllocateDescriptorSets(device.device, &info, &handles->set),
                        "allocate a descriptor set", log));
      writeSet(device, arenas, plan, op, handles->set);
      ORIEL_TRY(writeTexelViews(device, arenas, op, handles->set, log, handles->texels));
      ++handles;
    }
  }
  return kOk;
}

void Bindings::releaseSets(const VulkanDevice& device) {
  if (pool_ != VK_NULL_HANDLE) {
    device.api.vkDestroyDescriptorPool(device.device, pool_, nullptr);
    pool_ = VK_NULL_HANDLE;
  }
}

void Bindings::release(const VulkanDevice& device) {
  releaseSets(device);
  device.api.vkDestroyPipelineLayout(device.device, pipeline_layout_, nullptr);
  device.api.vkDestroyDescriptorSetLayout(device.device, set_layout_, nullptr);
}

}  // namespace oriel_internal
