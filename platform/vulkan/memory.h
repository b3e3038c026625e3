// The plan's device arenas: one allocation and one buffer per segment, taken once.
#pragma once

#include "vulkan/device.h"

namespace oriel {

class DeviceArenas {
 public:
  /// Takes every arena of the plan, to the byte; kIo stays mapped. On failure release() gives back
  /// what was taken.
  Status take(const VulkanDevice& device, const Plan& plan, const Log& log);
  void release(const VulkanDevice& device);

  /// Null for an arena of no bytes.
  VkBuffer buffer(ArenaKind arena, uint32_t segment = 0) const;
  uint8_t* mapped(const BufferRef& piece) const { return io_ + piece.offset_bytes; }
  uint64_t allocatedBytes(ArenaKind kind) const { return allocated_bytes_[index(kind)]; }

 private:
  struct Segment {
    VkBuffer buffer;
    VkDeviceMemory memory;
  };
  /// BufferRef numbers segments in 8 bits; with segments of 2^30 bytes that is 256 GiB of weights.
  static constexpr uint32_t kMaxWeightSegments = 256;

  static constexpr uint32_t index(ArenaKind kind) { return static_cast<uint32_t>(kind); }
  Status takeSegment(const VulkanDevice& device, ArenaKind kind, uint64_t bytes, const Log& log,
                     Segment* segment);

  Segment weights_[kMaxWeightSegments] = {};
  Segment others_[kArenaKinds] = {};  // by kind; kWeights unused
  uint64_t allocated_bytes_[kArenaKinds] = {};
  uint8_t* io_ = nullptr;
};

}  // namespace oriel
