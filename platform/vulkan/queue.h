// Submissions to the device, each with a fence, and the failure that ends all further work.
#pragma once

#include "vulkan/memory.h"

namespace oriel_internal {

/// Halves of the upload ring, used in turn.
constexpr uint32_t kUploadHalves = 2;
/// Submissions of a step that the queue holds at a time: the device goes on with one while the host takes
/// note of the other.
constexpr uint32_t kFlights = 2;
/// Blocks that a step's numbers are written to: Plan::step and Plan::step_ahead.
constexpr uint32_t kStepBlocks = 2;

/// Fences: one per upload half, one per flight, which everything else uses the first of, and one per step
/// block for what runs ahead.
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
  /// All command buffers of the pool go with it.
  void release();

  VkCommandPool pool() const { return pool_; }
  /// From the pool.
  Status takeCommands(VkCommandBuffer* commands, uint32_t count) const;

  /// Waits for the fence's submission before, if that is still under way. The device sees what the host wrote with a step.
  Status submit(const VkCommandBuffer* commands, uint32_t count, uint32_t fence);
  /// For the fence's submission, if there is one; then the host sees what that wrote of a step. ORIEL_ERROR_DEVICE, or ORIEL_ERROR_TIMEOUT: it is still under way. Only time in which
  /// this process ran counts. After a failure all waits together take no longer than one, after a timeout none.
  Status wait(uint32_t fence);
  Status submitAndWait(VkCommandBuffer commands);
  bool inFlight(uint32_t fence) const { return in_flight_[fence]; }

  /// The failure that nothing can follow, or OK.
  Status failed() const { return failed_; }
  /// Remembers such a failure, the first; gives `status` back.
  Status settle(Status status);
  void fail(Status status) { failed_ = status; }

 private:
  const VulkanDevice* device_ = nullptr;
  const DeviceArenas* arenas_ = nullptr;
  uint32_t timeout_ms_ = 0;
  double left_ms_ = 0;  // of a wait, once something has failed
  Log log_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkFence fences_[kFences] = {};
  bool in_flight_[kFences] = {};
  Status failed_;
};

}  // namespace oriel_internal
