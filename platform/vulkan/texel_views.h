// Bindings that a kernel reads as texels instead of storage. CPU drivers fetch the texels of all
// lanes with vector loads, but load from a storage buffer lane by lane.
#pragma once

#include "vulkan/memory.h"

namespace oriel_internal {

/// Texel bindings follow the storage bindings: kMaxOpBindings and on. Four is what every device
/// allows.
constexpr uint32_t kMaxTexelViews = 4;

/// Makes the texel views of `op`'s kernel and writes them to `set`; none if kernels read only
/// storage buffers. `views` must be null. It holds the views that were made, even after a failure.
Status writeTexelViews(const VulkanDevice& device, const DeviceArenas& arenas, const Op& op,
                       VkDescriptorSet set, const Log& log, VkBufferView views[kMaxTexelViews]);

void releaseTexelViews(const VulkanDevice& device, VkBufferView views[kMaxTexelViews]);

}  // namespace oriel_internal
