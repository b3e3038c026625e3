#include "vulkan/texel_views.h"

#include <algorithm>

#include "base/checked.h"

namespace oriel {
namespace {

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

}  // namespace

uint32_t texelViewsOf(OpKind kind, TexelView views[kMaxTexelViews]) {
  switch (kind) {
    case OpKind::kMatmul:
      return copyViews(kMatmulViews, views);
    case OpKind::kAttention:
      return copyViews(kAttentionViews, views);
    default:
      return 0;
  }
}

Status createTexelView(const VulkanDevice& device, VkBuffer buffer, const BufferRef& piece,
                       VkFormat format, const Log& log, VkBufferView* view) {
  VkBufferViewCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO;
  info.buffer = buffer;
  info.format = format;
  info.offset = piece.offset_bytes;
  // Whole texels; arenas end on a multiple of them.
  info.range = alignUp(piece.size_bytes, kQuadBytes);
  const VkResult result = device.api.vkCreateBufferView(device.device, &info, nullptr, view);
  if (result < 0) {
    *view = VK_NULL_HANDLE;
  }
  return checkVk(result, "create a buffer view", log);
}

}  // namespace oriel
