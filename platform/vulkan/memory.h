// Device memory: arenas, submissions, and transfers from and to the host.
#pragma once

#include <atomic>

#include "exec/executor.h"
#include "vulkan/device.h"

namespace oriel_internal {

// The plan's device arenas: one allocation and one buffer per segment, made once, and again after giving them back.

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

// Submissions to the device, each with a fence, and the failure that ends all further work.

/// Halves of the upload ring, used in turn.
constexpr uint32_t kUploadHalves = 2;
/// Submissions of a step that are queued at a time: the device works on one while the host handles
/// the other.
constexpr uint32_t kFlights = 2;
/// Blocks for a step's numbers: Plan::step and Plan::step_ahead.
constexpr uint32_t kStepBlocks = 2;

/// Fences: one per upload half, one per flight (the first also serves all other work), and one per step
/// block for the step ahead.
constexpr uint32_t kUploadFence = 0;
constexpr uint32_t kRunFence = kUploadFence + kUploadHalves;
constexpr uint32_t kAheadFence = kRunFence + kFlights;
constexpr uint32_t kFences = kAheadFence + kStepBlocks;

/// Use from one thread at a time.
class Queue {
 public:
  /// `device` and `arenas` outlive the queue.
  Status create(const VulkanDevice& device, const DeviceArenas& arenas, uint32_t timeout_ms,
                const Log& log);
  /// Waits for all work in flight: the remaining time after a failure, and at least `grace_ms`. False if the device did
  /// not finish, so that its objects must not be destroyed.
  bool drain(double grace_ms = 0);
  /// Also frees all command buffers of the pool.
  void release();

  VkCommandPool pool() const { return pool_; }
  /// Allocates from the pool.
  Status takeCommands(VkCommandBuffer* commands, uint32_t count) const;

  /// Waits for the previous submission with this fence. Host writes to the step become visible to the device.
  Status submit(const VkCommandBuffer* commands, uint32_t count, uint32_t fence);
  /// Waits for the fence's submission, if any, and makes its writes to the step visible to the host. ORIEL_ERROR_DEVICE,
  /// or ORIEL_ERROR_TIMEOUT if it is still in flight. Counts only time in which this process ran. After a failure all
  /// waits together take no longer than one, after a timeout no time.
  Status wait(uint32_t fence);
  Status submitAndWait(VkCommandBuffer commands);
  bool inFlight(uint32_t fence) const { return in_flight_[fence]; }

  /// The failure that ends all further work, or OK.
  Status failed() const { return failed_; }
  /// Records the first such failure; returns `status`.
  Status settle(Status status);
  void fail(Status status) { failed_ = status; }

 private:
  const VulkanDevice* device_ = nullptr;
  const DeviceArenas* arenas_ = nullptr;
  uint32_t timeout_ms_ = 0;
  double left_ms_ = 0;  // time left for waits after a failure
  Log log_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkFence fences_[kFences] = {};
  bool in_flight_[kFences] = {};
  Status failed_;
};

// Transfers between the host and the device's arenas, through the upload ring (Plan::upload).

/// Every function except create() returns the queue's failure, if any, and records its own failures there.
class Transfers {
 public:
  /// All four must outlive this object.
  Status create(const VulkanDevice& device, Queue* queue, const DeviceArenas& arenas,
                const Plan& plan, const Log& log);
  /// Records for the present arenas. Call before logits() uses them.
  Status record();

  /// As in Executor.
  Status beginWrite(uint64_t bytes, void** piece);
  Status endWrite(const BufferRef& destination, uint64_t offset_bytes, uint64_t bytes);
  Status finishWrites();
  Status read(const BufferRef& source, uint64_t offset_bytes, uint64_t bytes, const void** piece);
  /// Like read(), for all logits of an output. The logits of the first output are needed in generation, so their
  /// commands are recorded once.
  Status logits(uint32_t output, const float** values);
  Status keptLogits(uint32_t session, const float** values);
  Status copy(const CopyPiece* pieces, size_t count);

  /// Zeroes the cache, the activations (products read their padding, which must be zero and never NaN) and all memory
  /// that the host sees; the latter even if the device has failed. Skips arenas that were given back.
  Status forget() { return clear(kAllArenas); }
  /// The same for some arenas; never for weights.
  Status clear(ArenaSet arenas);
  /// The same, if only these pieces of the cache were written.
  Status forget(const BufferRef* pieces, size_t count);

 private:
  Status sendClearing(ArenaSet arenas);
  Status sendForgetting(const BufferRef* pieces, size_t count);
  Status readLogits(const BufferRef& rows, uint32_t row, const float** values);
  Status begin(VkCommandBuffer commands, VkCommandBufferUsageFlags usage) const;
  Status recordRead(VkCommandBuffer commands, VkCommandBufferUsageFlags usage,
                    const BufferRef& source, uint64_t offset_bytes, uint64_t bytes) const;
  Status submitRead(VkCommandBuffer commands, uint64_t bytes) const;
  void wipeHost(uint64_t begin, uint64_t bytes) const;
  uint64_t logitsBytes() const { return plan_->logits.size_bytes / plan_->output_rows; }
  uint64_t halfBytes() const { return plan_->upload.size_bytes / kUploadHalves; }

  const VulkanDevice* device_ = nullptr;
  Queue* queue_ = nullptr;
  const DeviceArenas* arenas_ = nullptr;
  const Plan* plan_ = nullptr;
  Log log_;
  /// One per half, then a buffer that is recorded once. The first half's buffer also serves reads.
  static constexpr uint32_t kLogitsCommands = kUploadHalves;
  static constexpr uint32_t kCommands = kLogitsCommands + 1;
  VkCommandBuffer commands_[kCommands] = {};
  uint32_t half_ = 0;
};

}  // namespace oriel_internal
