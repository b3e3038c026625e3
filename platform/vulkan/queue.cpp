#include "vulkan/memory.h"

#include <algorithm>

#include "base/hash.h"
#include "vulkan/step_commands.h"

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

namespace {

// An empty arena has no buffer.
void recordFill(const VulkanApi& api, VkCommandBuffer commands, VkBuffer buffer) {
  if (buffer != VK_NULL_HANDLE) {
    api.vkCmdFillBuffer(commands, buffer, 0, VK_WHOLE_SIZE, 0);
  }
}

bool isWithin(const BufferRef& piece, uint64_t offset_bytes, uint64_t bytes) {
  return offset_bytes <= piece.size_bytes && bytes <= piece.size_bytes - offset_bytes;
}

}  // namespace

Status Transfers::create(const VulkanDevice& device, Queue* queue, const DeviceArenas& arenas,
                         const Plan& plan, const Log& log) {
  device_ = &device;
  queue_ = queue;
  arenas_ = &arenas;
  plan_ = &plan;
  log_ = log;
  return queue->takeCommands(commands_, kCommands);
}

Status Transfers::record() {
  return recordRead(commands_[kLogitsCommands], 0, plan_->logits, 0, logitsBytes());
}

Status Transfers::beginWrite(uint64_t bytes, void** piece) {
  ORIEL_TRY(queue_->failed());
  if (bytes > halfBytes()) {
    return log_.fail(ORIEL_ERROR_INTERNAL, "an upload larger than its ring: please report it");
  }
  ORIEL_TRY(queue_->settle(queue_->wait(kUploadFence + half_)));
  *piece = arenas_->mapped(plan_->upload) + half_ * halfBytes();
  return kOk;
}

Status Transfers::endWrite(const BufferRef& destination, uint64_t offset_bytes, uint64_t bytes) {
  ORIEL_TRY(queue_->failed());
  if (!isWithin(destination, offset_bytes, bytes)) {
    return log_.fail(ORIEL_ERROR_INTERNAL, "an upload past its destination: please report it");
  }
  if (bytes == 0) {
    return kOk;
  }
  const VkCommandBuffer commands = commands_[half_];
  ORIEL_TRY(queue_->settle(begin(commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)));
  const VkBufferCopy region = {plan_->upload.offset_bytes + half_ * halfBytes(),
                               destination.offset_bytes + offset_bytes, bytes};
  ORIEL_TRY(queue_->settle(arenas_->flush(*device_, region.srcOffset, bytes, log_)));
  device_->api.vkCmdCopyBuffer(commands, arenas_->buffer(ArenaKind::kIo),
                               arenas_->buffer(destination.arena, destination.segment), 1, &region);
  ORIEL_TRY(queue_->settle(endCommands(*device_, commands, log_)));
  ORIEL_TRY(queue_->settle(queue_->submit(&commands, 1, kUploadFence + half_)));
  half_ = (half_ + 1) % kUploadHalves;
  return kOk;
}

Status Transfers::finishWrites() {
  ORIEL_TRY(queue_->failed());
  for (uint32_t half = 0; half < kUploadHalves; ++half) {
    ORIEL_TRY(queue_->settle(queue_->wait(kUploadFence + half)));
  }
  return kOk;
}

Status Transfers::read(const BufferRef& source, uint64_t offset_bytes, uint64_t bytes,
                       const void** piece) {
  ORIEL_TRY(queue_->failed());
  if (bytes > halfBytes() || !isWithin(source, offset_bytes, bytes)) {
    return log_.fail(ORIEL_ERROR_INTERNAL, "a read past its source: please report it");
  }
  ORIEL_TRY(finishWrites());
  ORIEL_TRY(queue_->settle(recordRead(commands_[0], VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
                                      source, offset_bytes, bytes)));
  ORIEL_TRY(submitRead(commands_[0], bytes));
  *piece = arenas_->mapped(plan_->upload);
  return kOk;
}

Status Transfers::logits(uint32_t output, const float** values) {
  ORIEL_TRY(finishWrites());
  if (output >= plan_->output_rows) {
    return log_.fail(ORIEL_ERROR_INTERNAL, "no such output: please report it");
  }
  if (output != 0) {
    return readLogits(plan_->logits, output, values);
  }
  ORIEL_TRY(submitRead(commands_[kLogitsCommands], logitsBytes()));
  *values = reinterpret_cast<const float*>(arenas_->mapped(plan_->upload));
  return kOk;
}

Status Transfers::keptLogits(uint32_t session, const float** values) {
  ORIEL_TRY(finishWrites());
  if (session >= plan_->sessionCount()) {
    return log_.fail(ORIEL_ERROR_INTERNAL, "no such session: please report it");
  }
  return readLogits(plan_->kept_logits, session, values);
}

Status Transfers::readLogits(const BufferRef& rows, uint32_t row, const float** values) {
  const VkCommandBuffer commands = commands_[0];
  ORIEL_TRY(queue_->settle(recordRead(commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, rows,
                                      row * logitsBytes(), logitsBytes())));
  ORIEL_TRY(submitRead(commands, logitsBytes()));
  *values = reinterpret_cast<const float*>(arenas_->mapped(plan_->upload));
  return kOk;
}

Status Transfers::copy(const CopyPiece* pieces, size_t count) {
  const VkCommandBuffer commands = commands_[0];
  ORIEL_TRY(finishWrites());
  ORIEL_TRY(queue_->settle(begin(commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)));
  for (size_t i = 0; i < count; ++i) {
    const BufferRef& from = pieces[i].from;
    const BufferRef& to = pieces[i].to;
    const VkBufferCopy region = {from.offset_bytes, to.offset_bytes, from.size_bytes};
    device_->api.vkCmdCopyBuffer(commands, arenas_->buffer(from.arena, from.segment),
                                 arenas_->buffer(to.arena, to.segment), 1, &region);
  }
  ORIEL_TRY(queue_->settle(endCommands(*device_, commands, log_)));
  return queue_->settle(queue_->submitAndWait(commands));
}

// Clears the host's part even after an earlier failure.
Status Transfers::clear(ArenaSet arenas) {
  Status status = sendClearing(arenas);
  if (contains(arenas, ArenaKind::kIo) && arenas_->buffer(ArenaKind::kIo) != VK_NULL_HANDLE) {
    wipeHost(0, plan_->io_bytes);
  }
  return status;
}

Status Transfers::sendClearing(ArenaSet arenas) {
  const VkCommandBuffer commands = commands_[0];
  ORIEL_TRY(finishWrites());
  ORIEL_TRY(queue_->settle(begin(commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)));
  for (const ArenaKind kind : {ArenaKind::kCache, ArenaKind::kActivations}) {
    for (uint32_t s = 0; contains(arenas, kind) && s < DeviceArenas::segments(*plan_, kind); ++s) {
      recordFill(device_->api, commands, arenas_->buffer(kind, s));
    }
  }
  ORIEL_TRY(queue_->settle(endCommands(*device_, commands, log_)));
  return queue_->settle(queue_->submitAndWait(commands));
}

Status Transfers::forget(const BufferRef* pieces, size_t count) {
  const Status status = sendForgetting(pieces, count);
  if (arenas_->buffer(ArenaKind::kIo) == VK_NULL_HANDLE) {
    return status;
  }
  for (size_t i = 0; i < count; ++i) {
    if (pieces[i].arena == ArenaKind::kIo) {
      wipeHost(pieces[i].offset_bytes, pieces[i].size_bytes);
    }
  }
  forEachScratch(*plan_, [&](const ScratchPiece& piece) {
    if (piece.arena == ArenaKind::kIo) {
      wipeHost(piece.begin, piece.end - piece.begin);
    }
  });
  return status;
}

// Clears the pieces on the device, except in arenas that were given back.
Status Transfers::sendForgetting(const BufferRef* pieces, size_t count) {
  const VkCommandBuffer commands = commands_[0];
  ORIEL_TRY(finishWrites());
  ORIEL_TRY(queue_->settle(begin(commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)));
  const auto fill = [&](ArenaKind arena, uint32_t segment, uint64_t from, uint64_t to) {
    const VkBuffer buffer = arenas_->buffer(arena, segment);
    if (arena != ArenaKind::kIo && buffer != VK_NULL_HANDLE && from != to) {
      device_->api.vkCmdFillBuffer(commands, buffer, from, to - from, 0);
    }
  };
  for (size_t i = 0; i < count; ++i) {
    // Fills cover whole words; the rest of these words is unused, too.
    fill(pieces[i].arena, pieces[i].segment, pieces[i].offset_bytes / 4 * 4,
         alignUp(pieces[i].offset_bytes + pieces[i].size_bytes, uint64_t{4}));
  }
  forEachScratch(*plan_,
                 [&](const ScratchPiece& piece) { fill(piece.arena, 0, piece.begin, piece.end); });
  ORIEL_TRY(queue_->settle(endCommands(*device_, commands, log_)));
  return queue_->settle(queue_->submitAndWait(commands));
}

// Waits for the writes of earlier steps and transfers.
Status Transfers::begin(VkCommandBuffer commands, VkCommandBufferUsageFlags usage) const {
  ORIEL_TRY(beginCommands(*device_, commands, usage, log_));
  recordBarrier(device_->api, commands, kCompute | kTransfer,
                VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, kTransfer,
                VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  return kOk;
}

void Transfers::wipeHost(uint64_t begin, uint64_t bytes) const {
  wipe(arenas_->mapped({ArenaKind::kIo, 0, begin, 0}), bytes);
  (void)arenas_->flush(*device_, begin, bytes, log_);
}

// Submits the commands of recordRead().
Status Transfers::submitRead(VkCommandBuffer commands, uint64_t bytes) const {
  ORIEL_TRY(queue_->settle(queue_->submitAndWait(commands)));
  return queue_->settle(arenas_->invalidate(*device_, plan_->upload.offset_bytes, bytes, log_));
}

// Copies to the beginning of the upload ring. Uploads must have ended.
Status Transfers::recordRead(VkCommandBuffer commands, VkCommandBufferUsageFlags usage,
                             const BufferRef& source, uint64_t offset_bytes, uint64_t bytes) const {
  ORIEL_TRY(begin(commands, usage));
  if (bytes != 0) {
    const VkBufferCopy region = {source.offset_bytes + offset_bytes, plan_->upload.offset_bytes,
                                 bytes};
    device_->api.vkCmdCopyBuffer(commands, arenas_->buffer(source.arena, source.segment),
                                 arenas_->buffer(ArenaKind::kIo), 1, &region);
  }
  recordBarrier(device_->api, commands, kTransfer, VK_ACCESS_TRANSFER_WRITE_BIT,
                VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  return endCommands(*device_, commands, log_);
}

}  // namespace oriel_internal
