// The plan's device arenas: one allocation and one buffer per segment, made once, and again after giving them back.
#pragma once

#include <atomic>

#include "exec/executor.h"
#include "vulkan/device.h"

namespace oriel_internal {

class DeviceArenas {
 public:
  /// Allocates the missing arenas among these. Sizes are exact, except for the driver's rounding. kIo stays mapped. After
  /// a failure release() frees the allocated arenas.
  Status take(const VulkanDevice& device, const Plan& plan, ArenaSet arenas, const Log& log);
  void release(const VulkanDevice& device, ArenaSet arenas);

  /// Null for an empty or missing arena.
  VkBuffer buffer(ArenaKind arena, uint32_t segment = 0) const;
  /// Segments of the arena; 0 if it is empty.
  static uint32_t segments(const Plan& plan, ArenaKind arena);
  uint8_t* mapped(const BufferRef& piece) const { return io_ + piece.offset_bytes; }
  /// For kIo in non-coherent memory. Flush host writes before a submission; invalidate device writes after the wait and
  /// before reading.
  Status flush(const VulkanDevice& device, uint64_t begin, uint64_t bytes, const Log& log) const;
  Status invalidate(const VulkanDevice& device, uint64_t begin, uint64_t bytes,
                    const Log& log) const;
  /// The same for all data that the host writes, or reads, in a step.
  Status flushStep(const VulkanDevice& device, const Log& log) const;
  Status invalidateStep(const VulkanDevice& device, const Log& log) const;
  uint64_t allocatedBytes(ArenaKind kind) const {
    return allocated_bytes_[index(kind)].load(std::memory_order_relaxed);
  }

 private:
  struct Segment {
    VkBuffer buffer;
    VkDeviceMemory memory;
  };
  struct Taken {
    uint64_t bytes = 0;
    bool coherent = true;
  };
  /// BufferRef numbers segments in 8 bits; with segments of 2^30 bytes that is 256 GiB of weights.
  static constexpr uint32_t kMaxSegments = 256;

  static constexpr uint32_t index(ArenaKind kind) { return static_cast<uint32_t>(kind); }
  const Segment& at(ArenaKind kind, uint32_t segment) const {
    return kind == ArenaKind::kWeights ? segments_[segment]
           : kind == ArenaKind::kCache ? segments_[cache_first_ + segment]
                                       : others_[index(kind)];
  }
  Status takeSegment(const VulkanDevice& device, ArenaKind kind, uint64_t bytes, const Log& log,
                     Segment* segment);
  static Status makeSegment(const VulkanDevice& device, ArenaKind kind, uint64_t bytes,
                            const Log& log, Segment* segment, Taken* taken);
  template <typename Call>
  Status forRange(const VulkanDevice& device, uint64_t begin, uint64_t bytes, Call call,
                  const char* what, const Log& log) const;
  static void releaseSegment(const VulkanDevice& device, Segment* segment);

  Segment segments_[kMaxSegments] = {};  // weights, then cache
  Segment others_[kArenaKinds] = {};     // by kind; kActivations and kIo
  uint32_t cache_first_ = 0;             // index in segments_
  std::atomic<uint64_t> allocated_bytes_[kArenaKinds] = {};
  uint8_t* io_ = nullptr;
  Taken io_taken_;
  const Plan* plan_ = nullptr;
};

// Bindings that a kernel reads as texels instead of storage. CPU drivers fetch the texels of all
// lanes with vector loads, but load from a storage buffer lane by lane.

/// Texel bindings follow the storage bindings: kMaxOpBindings and on. Four is what every device
/// allows.
constexpr uint32_t kMaxTexelViews = 4;

/// Makes the texel views of `op`'s kernel and writes them to `set`; none if kernels read only
/// storage buffers. `views` must be null. It holds the views that were made, even after a failure.
Status writeTexelViews(const VulkanDevice& device, const DeviceArenas& arenas, const Op& op,
                       VkDescriptorSet set, const Log& log, VkBufferView views[kMaxTexelViews]);

void releaseTexelViews(const VulkanDevice& device, VkBufferView views[kMaxTexelViews]);

}  // namespace oriel_internal
