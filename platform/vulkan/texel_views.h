// Bindings that a kernel reads as texels rather than as storage. CPUs' drivers fetch the texels of all
// lanes with vector loads, but walk from lane to lane to load from a storage buffer.
#pragma once

#include "vulkan/device.h"

namespace oriel {

/// Texel bindings follow the storage bindings: kMaxOpBindings and on. Four is what every device
/// allows.
constexpr uint32_t kMaxTexelViews = 4;

struct TexelView {
  uint32_t binding;  ///< of the op
  VkFormat format;
};

/// What kernels of `kind` see as texels, in the order of their texel bindings; returns how many.
uint32_t texelViewsOf(OpKind kind, TexelView views[kMaxTexelViews]);

/// Makes a view of `piece`, which lies in `buffer`.
Status createTexelView(const VulkanDevice& device, VkBuffer buffer, const BufferRef& piece,
                       VkFormat format, const Log& log, VkBufferView* view);

}  // namespace oriel
