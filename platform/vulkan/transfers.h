// Transfers between the host and the device's arenas, through the upload ring (Plan::upload).
#pragma once

#include "exec/executor.h"
#include "vulkan/memory.h"
#include "vulkan/queue.h"

namespace oriel_internal {

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
