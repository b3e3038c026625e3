#include "vulkan/queue.h"

#include <algorithm>

namespace oriel_internal {
namespace {

/// Longest single wait; some drivers mishandle very long ones. A process that is stopped or asleep loses at most one.
constexpr double kWaitSliceMs = 250.0;
constexpr double kLeastWaitSliceMs = 1.0;
constexpr double kLeastSlices = 16.0;  // per full wait
/// A driver may be out of memory for a moment; its work continues meanwhile.
constexpr uint32_t kMostRefusals = 16;

bool isMemory(VkResult result) {
  return result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

}  // namespace

Status Queue::create(const VulkanDevice& device, const DeviceArenas& arenas, uint32_t timeout_ms,
                     const Log& log) {
  device_ = &device;
  arenas_ = &arenas;
  timeout_ms_ = timeout_ms;
  left_ms_ = timeout_ms;
  log_ = log;
  const VulkanApi& api = device.api;
  VkCommandPoolCreateInfo pool_info = {};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool_info.queueFamilyIndex = device.caps.compute_family;
  ORIEL_TRY(checkMade(api.vkCreateCommandPool(device.device, &pool_info, nullptr, &pool_), &pool_,
                      "create a command pool", log));
  VkFenceCreateInfo fence_info = {};
  fence_info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  for (VkFence& fence : fences_) {
    ORIEL_TRY(checkMade(api.vkCreateFence(device.device, &fence_info, nullptr, &fence), &fence,
                        "create a fence", log));
  }
  return kOk;
}

bool Queue::drain(double grace_ms) {
  left_ms_ = std::max(left_ms_, grace_ms);
  bool drained = true;
  for (uint32_t i = 0; i < kFences; ++i) {
    (void)wait(i);
    drained = drained && !in_flight_[i];
  }
  return drained;
}

void Queue::release() {
  if (device_ == nullptr) {
    return;
  }
  for (VkFence fence : fences_) {
    device_->api.vkDestroyFence(device_->device, fence, nullptr);
  }
  device_->api.vkDestroyCommandPool(device_->device, pool_, nullptr);
}

Status Queue::takeCommands(VkCommandBuffer* commands, uint32_t count) const {
  VkCommandBufferAllocateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = count;
  return checkVk(device_->api.vkAllocateCommandBuffers(device_->device, &info, commands),
                 "allocate command buffers", log_);
}

Status Queue::submit(const VkCommandBuffer* commands, uint32_t count, uint32_t fence) {
  const VulkanApi& api = device_->api;
  ORIEL_TRY(wait(fence));  // a failed wait may have left it in use
  ORIEL_TRY(settle(
      checkVk(api.vkResetFences(device_->device, 1, &fences_[fence]), "reset a fence", log_)));
  ORIEL_TRY(settle(arenas_->flushStep(*device_, log_)));
  VkSubmitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = count;
  info.pCommandBuffers = commands;
  device_->watch.enter(DriverPlace::kFirstSteps, 0);
  const VkResult result = api.vkQueueSubmit(device_->queue, 1, &info, fences_[fence]);
  device_->watch.leave(DriverPlace::kFirstSteps, 0);
  ORIEL_TRY(settle(checkVk(result, "submit work to the device", log_)));
  in_flight_[fence] = true;
  return kOk;
}

Status Queue::wait(uint32_t fence) {
  if (!in_flight_[fence]) {
    return kOk;
  }
  const bool failed_before = !failed_.ok();
  double left = failed_before ? left_ms_ : timeout_ms_;
  // If a slice takes longer than requested, this process was stopped or asleep: count only the requested time.
  const double longest = std::clamp(timeout_ms_ / kLeastSlices, kLeastWaitSliceMs, kWaitSliceMs);
  uint32_t refusals = 0;
  VkResult result;
  do {
    const double slice = std::min(left, longest);
    const double begin = nowMs();
    result = device_->api.vkWaitForFences(device_->device, 1, &fences_[fence], VK_TRUE,
                                          static_cast<uint64_t>(slice * 1e6));
    left -= std::min(nowMs() - begin, slice);
    refusals += isMemory(result) ? 1 : 0;
  } while ((result == VK_TIMEOUT || (isMemory(result) && refusals < kMostRefusals)) && left > 0);
  if (failed_before) {
    left_ms_ = left;
  }
  if (result == VK_TIMEOUT) {
    left_ms_ = 0;
    return failed_before
               ? Status(ORIEL_ERROR_TIMEOUT)
               : settle(log_.fail(
                     ORIEL_ERROR_TIMEOUT,
                     "%s did not answer within %u ms: call oriel_session_recover, or load the "
                     "model with a longer timeout or a smaller chunk, or on the CPU",
                     device_->caps.name, timeout_ms_));
  }
  // Finished, or lost: a lost device does no more work.
  in_flight_[fence] = result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST;
  Status status = checkVk(result, "wait for the device", failed_before ? Log() : log_);
  if (status.ok()) {
    status = arenas_->invalidateStep(*device_, failed_before ? Log() : log_);
  }
  return settle(status.ok() ? status : Status(ORIEL_ERROR_DEVICE));
}

Status Queue::submitAndWait(VkCommandBuffer commands) {
  ORIEL_TRY(submit(&commands, 1, kRunFence));
  return wait(kRunFence);
}

Status Queue::settle(Status status) {
  const bool lost = status.code() == ORIEL_ERROR_DEVICE || status.code() == ORIEL_ERROR_TIMEOUT;
  if (lost && failed_.ok()) {
    failed_ = status;
  }
  return status;
}

}  // namespace oriel_internal
