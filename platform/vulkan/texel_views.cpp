#include "vulkan/texel_views.h"

#include <algorithm>

#include "base/checked.h"

namespace oriel_internal {
namespace {

struct TexelView {
  uint32_t binding;  // of the op
  VkFormat format;
};

constexpr VkFormat kQuads = VK_FORMAT_R32G32B32A32_UINT;
constexpr VkFormat kQuadsOfFloats = VK_FORMAT_R32G32B32A32_SFLOAT;
constexpr VkFormat kWords = VK_FORMAT_R32_UINT;
constexpr uint64_t kQuadBytes = 16;

constexpr TexelView kMatmulViews[] = {{0, kQuads}, {0, kWords}, {3, kQuadsOfFloats}};
constexpr TexelView kAttentionViews[] = {{3, kQuads}, {3, kWords}, {4, kQuads}, {4, kWords}};

template <size_t kCount>
uint32_t copyViews(const TexelView (&from)[kCount], TexelView to[kMaxTexelViews]) {
  static_assert(kCount <= kMaxTexelViews, "texel views of a kernel");
  std::copy(from, from + kCount, to);
  return kCount;
}

// In the order of the kernel's texel bindings; returns how many.
uint32_t texelViewsOf(OpKind kind, TexelView views[kMaxTexelViews]) {
  switch (kind) {
    case OpKind::kMatmul:
    case OpKind::kExpertMatmul:
      return copyViews(kMatmulViews, views);
    case OpKind::kAttention:
      return copyViews(kAttentionViews, views);
    default:
      return 0;
  }
}

}  // namespace

Status writeTexelViews(const VulkanDevice& device, const DeviceArenas& arenas, const Op& op,
                       VkDescriptorSet set, const Log& log, VkBufferView views[kMaxTexelViews]) {
  TexelView wanted[kMaxTexelViews];
  const uint32_t count = device.caps.readsTexels() ? texelViewsOf(op.kind, wanted) : 0;
  if (count == 0) {
    return kOk;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const BufferRef& piece = op.bindings[wanted[i].binding];
    VkBufferViewCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO;
    info.buffer = arenas.buffer(piece.arena, piece.segment);
    info.format = wanted[i].format;
    info.offset = piece.offset_bytes;
    // Whole texels; arenas end on a multiple of them.
    info.range = alignUp(piece.size_bytes, kQuadBytes);
    ORIEL_TRY(checkMade(device.api.vkCreateBufferView(device.device, &info, nullptr, &views[i]),
                        &views[i], "create a buffer view", log));
  }
  VkWriteDescriptorSet write = {};
  write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
  write.dstSet = set;
  write.dstBinding = kMaxOpBindings;
  write.descriptorCount = count;  // consecutive bindings
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER;
  write.pTexelBufferView = views;
  device.api.vkUpdateDescriptorSets(device.device, 1, &write, 0, nullptr);
  return kOk;
}

void releaseTexelViews(const VulkanDevice& device, VkBufferView views[kMaxTexelViews]) {
  for (uint32_t i = 0; i < kMaxTexelViews; ++i) {
    device.api.vkDestroyBufferView(device.device, views[i], nullptr);  // null: nothing
    views[i] = VK_NULL_HANDLE;
  }
}

}  // namespace oriel_internal
