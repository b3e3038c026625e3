#include "vulkan/memory.h"

#include <algorithm>
#include <cinttypes>
#include <initializer_list>

#include "base/checked.h"
#include "plan/memory_layout.h"

namespace oriel_internal {
namespace {

const char* arenaName(ArenaKind kind) {
  switch (kind) {
    case ArenaKind::kWeights:
      return "weights";
    case ArenaKind::kCache:
      return "cache";
    case ArenaKind::kActivations:
      return "activations";
    case ArenaKind::kIo:
      return "staging";
  }
  return "?";
}

// The first type of `allowed` that has all `wanted` flags; drivers list the fastest first.
bool findMemoryType(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed,
                    VkMemoryPropertyFlags wanted, uint32_t* type) {
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    if ((allowed >> i & 1u) != 0 && (memory.memoryTypes[i].propertyFlags & wanted) == wanted) {
      *type = i;
      return true;
    }
  }
  return false;
}

bool chooseMemoryType(const VkPhysicalDeviceMemoryProperties& memory, ArenaKind kind,
                      uint32_t allowed, uint32_t* type) {
  if (kind == ArenaKind::kIo) {
    constexpr VkMemoryPropertyFlags kMapped =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    // Cached: the host reads the best tokens of every step, and sometimes all logits. Coherent cached memory is
    // preferred; non-coherent memory needs flushes and invalidations.
    return findMemoryType(memory, allowed, kMapped | kCached, type) ||
           findMemoryType(memory, allowed, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | kCached, type) ||
           findMemoryType(memory, allowed, kMapped, type);
  }
  return findMemoryType(memory, allowed, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, type) ||
         findMemoryType(memory, allowed, 0, type);
}

/// Upper limit of the extra memory that drivers with whole-page allocations request for a buffer.
constexpr uint64_t kMostRounding = 64u << 10;

}  // namespace

VkBuffer DeviceArenas::buffer(ArenaKind arena, uint32_t segment) const {
  return at(arena, segment).buffer;
}

uint32_t DeviceArenas::segments(const Plan& plan, ArenaKind arena) {
  return arena == ArenaKind::kWeights ? plan.weight_segments
         : arena == ArenaKind::kCache ? cacheSegments(plan.cache_bytes)
                                      : 1;
}

// All or nothing: commands must not refer to a buffer without memory.
Status DeviceArenas::takeSegment(const VulkanDevice& device, ArenaKind kind, uint64_t bytes,
                                 const Log& log, Segment* segment) {
  if (bytes == 0 || segment->buffer != VK_NULL_HANDLE) {
    return kOk;
  }
  Taken taken;
  const Status status = makeSegment(device, kind, bytes, log, segment, &taken);
  if (status.ok()) {
    allocated_bytes_[index(kind)] += taken.bytes;
    io_taken_ = kind == ArenaKind::kIo ? taken : io_taken_;
    if (taken.bytes != bytes) {
      log.write(ORIEL_LOG_INFO, "%s rounds the %s up by %" PRIu64 " bytes", device.caps.name,
                arenaName(kind), taken.bytes - bytes);
    }
  } else {
    releaseSegment(device, segment);
  }
  return status;
}

Status DeviceArenas::makeSegment(const VulkanDevice& device, ArenaKind kind, uint64_t bytes,
                                 const Log& log, Segment* segment, Taken* taken) {
  const VulkanApi& api = device.api;
  if (bytes > device.caps.max_allocation_bytes) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "%s need one allocation of %" PRIu64 " bytes, %s allows %" PRIu64
                    ": give a smaller memory budget or window",
                    arenaName(kind), bytes, device.caps.name, device.caps.max_allocation_bytes);
  }
  VkBufferCreateInfo buffer_info = {};
  buffer_info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer_info.size = bytes;
  buffer_info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                      VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (kind == ArenaKind::kActivations) {
    buffer_info.usage |= VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;  // the step block
  }
  if (kind == ArenaKind::kWeights) {
    buffer_info.usage |= VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT;  // the codebooks
  }
  if (device.caps.readsTexels()) {
    buffer_info.usage |= VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT;
  }
  buffer_info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  ORIEL_TRY(checkMade(api.vkCreateBuffer(device.device, &buffer_info, nullptr, &segment->buffer),
                      &segment->buffer, "create a buffer", log));

  VkMemoryRequirements requirements;
  api.vkGetBufferMemoryRequirements(device.device, segment->buffer, &requirements);
  const uint64_t needed = std::max<uint64_t>(bytes, requirements.size);
  if (needed - bytes > kMostRounding) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "%s wants %" PRIu64 " bytes for a buffer planned with %" PRIu64
                    ": choose another device",
                    device.caps.name, needed, bytes);
  }
  VkPhysicalDeviceMemoryProperties memory;
  api.vkGetPhysicalDeviceMemoryProperties(device.physical, &memory);
  VkMemoryAllocateInfo allocate_info = {};
  allocate_info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate_info.allocationSize = needed;
  if (!chooseMemoryType(memory, kind, requirements.memoryTypeBits,
                        &allocate_info.memoryTypeIndex)) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED, "%s has no memory type for %s: choose another device",
                    device.caps.name, arenaName(kind));
  }
  const VkMemoryPropertyFlags flags =
      memory.memoryTypes[allocate_info.memoryTypeIndex].propertyFlags;
  *taken = {needed, (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0};
  ORIEL_TRY(
      checkMade(api.vkAllocateMemory(device.device, &allocate_info, nullptr, &segment->memory),
                &segment->memory, "allocate device memory", log));
  return checkVk(api.vkBindBufferMemory(device.device, segment->buffer, segment->memory, 0),
                 "bind device memory", log);
}

void DeviceArenas::releaseSegment(const VulkanDevice& device, Segment* segment) {
  if (segment->buffer != VK_NULL_HANDLE) {
    device.api.vkDestroyBuffer(device.device, segment->buffer, nullptr);
  }
  if (segment->memory != VK_NULL_HANDLE) {
    device.api.vkFreeMemory(device.device, segment->memory, nullptr);  // unmaps, too
  }
  *segment = {};
}

Status DeviceArenas::take(const VulkanDevice& device, const Plan& plan, ArenaSet arenas,
                          const Log& log) {
  cache_first_ = plan.weight_segments;
  const uint32_t count = cache_first_ + segments(plan, ArenaKind::kCache);
  if (count > kMaxSegments) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "weights and cache need %u allocations, at most %u are supported: use a "
                    "smaller model or window",
                    count, kMaxSegments);
  }
  const uint64_t wanted = plan.weights_bytes + plan.cache_bytes + plan.activation_bytes;
  if (contains(arenas, ArenaKind::kWeights) && device.caps.free_bytes != 0 &&
      wanted > device.caps.free_bytes) {
    log.write(ORIEL_LOG_WARNING,
              "%s has %" PRIu64 " MiB free and the plan takes %" PRIu64
              ": what does not fit may move to slower memory; give a smaller memory budget",
              device.caps.name, device.caps.free_bytes >> 20, wanted >> 20);
  }
  for (const ArenaKind kind :
       {ArenaKind::kWeights, ArenaKind::kCache, ArenaKind::kActivations, ArenaKind::kIo}) {
    for (uint32_t i = 0; contains(arenas, kind) && i < segments(plan, kind); ++i) {
      const uint64_t bytes = kind == ArenaKind::kWeights ? plan.weight_segment_bytes[i]
                             : kind == ArenaKind::kCache
                                 ? cacheSegment(plan.cache_bytes, i).size_bytes
                             : kind == ArenaKind::kIo ? plan.io_bytes
                                                      : plan.activation_bytes;
      ORIEL_TRY(takeSegment(device, kind, bytes, log, const_cast<Segment*>(&at(kind, i))));
    }
  }
  if (!contains(arenas, ArenaKind::kIo) || io_ != nullptr) {
    return kOk;
  }
  void* mapped = nullptr;
  const Status status =
      checkVk(device.api.vkMapMemory(device.device, others_[index(ArenaKind::kIo)].memory, 0,
                                     VK_WHOLE_SIZE, 0, &mapped),
              "map device memory", log);
  if (!status.ok()) {
    release(device, arenaBit(ArenaKind::kIo));
    return status;
  }
  io_ = static_cast<uint8_t*>(mapped);
  plan_ = &plan;
  return kOk;
}

template <typename Call>
Status DeviceArenas::forRange(const VulkanDevice& device, uint64_t begin, uint64_t bytes, Call call,
                              const char* what, const Log& log) const {
  if (io_taken_.coherent || bytes == 0) {
    return kOk;
  }
  const uint64_t atom = device.caps.non_coherent_atom_bytes;
  VkMappedMemoryRange range = {};
  range.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE;
  range.memory = others_[index(ArenaKind::kIo)].memory;
  range.offset = begin / atom * atom;
  const uint64_t end = alignUp(begin + bytes, atom);
  range.size = end < io_taken_.bytes ? end - range.offset : VK_WHOLE_SIZE;
  return checkVk(call(device.device, 1, &range), what, log);
}

Status DeviceArenas::flush(const VulkanDevice& device, uint64_t begin, uint64_t bytes,
                           const Log& log) const {
  return forRange(device, begin, bytes, device.api.vkFlushMappedMemoryRanges, "write to a device",
                  log);
}

Status DeviceArenas::invalidate(const VulkanDevice& device, uint64_t begin, uint64_t bytes,
                                const Log& log) const {
  return forRange(device, begin, bytes, device.api.vkInvalidateMappedMemoryRanges,
                  "read from a device", log);
}

Status DeviceArenas::flushStep(const VulkanDevice& device, const Log& log) const {
  if (io_taken_.coherent) {
    return kOk;
  }
  for (const BufferRef* piece : {&plan_->step, &plan_->step_ahead, &plan_->file_rows.place,
                                 &plan_->picture_rows, &plan_->slots}) {
    ORIEL_TRY(flush(device, piece->offset_bytes, piece->size_bytes, log));
  }
  return kOk;
}

Status DeviceArenas::invalidateStep(const VulkanDevice& device, const Log& log) const {
  if (io_taken_.coherent) {
    return kOk;
  }
  for (const BufferRef* piece : {&plan_->top, &plan_->routes}) {
    ORIEL_TRY(invalidate(device, piece->offset_bytes, piece->size_bytes, log));
  }
  return kOk;
}

void DeviceArenas::release(const VulkanDevice& device, ArenaSet arenas) {
  for (uint32_t kind = 0; kind < kArenaKinds; ++kind) {
    if (!contains(arenas, static_cast<ArenaKind>(kind))) {
      continue;
    }
    releaseSegment(device, &others_[kind]);
    const bool of_weights = kind == index(ArenaKind::kWeights);
    const uint32_t begin = of_weights ? 0 : cache_first_;
    const uint32_t end = of_weights ? cache_first_ : kMaxSegments;
    for (uint32_t i = begin; i < end && (of_weights || kind == index(ArenaKind::kCache)); ++i) {
      releaseSegment(device, &segments_[i]);
    }
    allocated_bytes_[kind] = 0;
  }
  if (contains(arenas, ArenaKind::kIo)) {
    io_ = nullptr;
  }
}

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
