// Submissions to the device, each with a fence, and the failure that ends all further work.
#pragma once

#include "vulkan/memory.h"

namespace oriel_internal {

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

}  // namespace oriel_internal
