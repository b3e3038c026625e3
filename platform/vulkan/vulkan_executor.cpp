#include "vulkan/vulkan_executor.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <new>

#include "exec/pace.h"
#include "vulkan/bindings.h"
#include "vulkan/pipeline_cache.h"
#include "vulkan/step_commands.h"
#include "vulkan/texel_views.h"

namespace oriel {
namespace {

/// Longest single wait; some drivers mishandle very long ones.
constexpr double kWaitSliceMs = 1000.0;

/// Command buffers besides those of steps: one that clears the cache, one per half of the upload ring.
constexpr uint32_t kClearCommands = 0;
constexpr uint32_t kUploadCommands = kClearCommands + 1;
constexpr uint32_t kUploadHalves = 2;
constexpr uint32_t kCommandBuffers = kUploadCommands + kUploadHalves;

/// Submissions of a step that the queue holds at a time: the device goes on with one while the host takes
/// note of the other.
constexpr uint32_t kFlights = 2;
/// One fence per upload half, one per flight, which everything else uses the first of, and one per step block
/// for what runs ahead.
constexpr uint32_t kRunFence = kUploadHalves;
constexpr uint32_t kAheadFence = kRunFence + kFlights;
constexpr uint32_t kStepBlocks = 2;
constexpr uint32_t kFences = kAheadFence + kStepBlocks;

class VulkanExecutor final : public Executor {
 public:
  VulkanExecutor(const Plan& plan, const ExecutorOptions& options, void* per_op)
      : plan_(plan), options_(options), handles_(static_cast<OpHandles*>(per_op)), device_() {
    std::fill_n(handles_, plan.opsBefore(kStepLists), OpHandles());
  }
  ~VulkanExecutor() override;
  Status create();

  Status beginWrite(uint64_t bytes, void** piece) override;
  Status endWrite(const BufferRef& destination, uint64_t offset_bytes, uint64_t bytes) override;
  Status finishLoad() override;
  Status finishWrites() override;
  Status read(const BufferRef& source, uint64_t offset_bytes, uint64_t bytes,
              const void** piece) override;
  void* step() override { return arenas_.mapped(plan_.step); }
  Status run(StepRun what, const StopCheck& stop) override;
  const TopTokens* top() const override {
    return reinterpret_cast<const TopTokens*>(arenas_.mapped(plan_.top));
  }
  Status logits(const float** values) override;
  bool runsAhead() const override { return device_.caps.has(VulkanFeature::kRunAhead); }
  void* aheadStep() override { return stepBlock(ahead_ ? 1 - block_ : 1); }
  Status runAhead(bool* more) override;
  Status dropAhead() override;
  Status clearCache() override;
  uint64_t allocatedBytes(ArenaKind kind) const override { return arenas_.allocatedBytes(kind); }
  const char* deviceName() const override { return device_.caps.name; }
  const char* driverName() const override { return device_.caps.driver; }
  PipelineStats pipelineStats() const override { return pipelines_.stats(); }
  void describeFeatures(char* text, size_t capacity) const override {
    oriel::describeFeatures(device_.caps, text, capacity);
  }
  const char* pathName() const override { return subgroupPath(device_.caps); }
  const char* matmulCandidate(MatmulUse use, WeightType type, uint32_t index) const override {
    const MatmulCandidate* const candidate = choices_.candidate(use, type, index);
    return candidate != nullptr ? candidate->name : nullptr;
  }
  uint32_t matmulChoice(MatmulUse use, WeightType type) const override {
    return choices_.choice(use, type);
  }
  uint32_t matmulStandard(MatmulUse use, WeightType type) const override {
    return choices_.standard(use, type);
  }
  bool matmulMeasured(MatmulUse use, WeightType type) const override {
    return choices_.measured(use, type);
  }
  Status takeMatmul(MatmulUse use, WeightType type, uint32_t index) override;
  bool keepMatmul(MatmulUse use, WeightType type, uint32_t index) override {
    return choices_.keep(use, type, index, options_.log);
  }

 private:
  uint64_t uploadHalfOffset(uint32_t half) const {
    return plan_.upload.offset_bytes + half * (plan_.upload.size_bytes / kUploadHalves);
  }

  Status choosePipelines();
  Status startPipelines();
  Status finishPipelines();
  Status recordSteps();

  Status begin(VkCommandBuffer commands, VkCommandBufferUsageFlags flags) const {
    return beginCommands(device_, commands, flags, options_.log);
  }
  Status end(VkCommandBuffer commands) const {
    return endCommands(device_, commands, options_.log);
  }
  Status recordClear();
  Status copyToHost(const BufferRef& source, uint64_t offset_bytes, uint64_t bytes,
                    const void** piece);
  Status clearDeviceMemory();

  Status submit(const VkCommandBuffer* commands, uint32_t count, uint32_t fence);
  Status wait(uint32_t fence);
  Status submitAndWait(VkCommandBuffer commands);
  Status submitStep(StepRun what, const StopCheck& stop);
  Status submitAhead(bool* more);
  Status land(uint32_t flight);
  /// Waits for whatever of a run that failed is still under way.
  Status endRun(Status status);
  void* stepBlock(uint32_t block) const {
    return arenas_.mapped(block == 0 ? plan_.step : plan_.step_ahead);
  }
  /// Remembers a failure that nothing can follow.
  Status settle(Status status);

  const Plan& plan_;
  ExecutorOptions options_;
  OpHandles* handles_;
  // In a union, so that a device that never came back can be left alone (see the destructor).
  union {
    VulkanDevice device_;
  };
  DeviceArenas arenas_;
  PipelineCache pipeline_cache_;
  Pipelines pipelines_;
  MatmulChoices choices_;
  Bindings bindings_;
  VkCommandPool command_pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_[kCommandBuffers] = {};
  VkFence fences_[kFences] = {};
  bool in_flight_[kFences] = {};
  uint32_t upload_half_ = 0;
  StepCommands steps_;
  struct Flight {
    double work;
    double sent_ms;
  };
  Flight flights_[kFlights] = {};
  double landed_ms_ = 0;  // when the latest flight was seen to be done
  Pace paces_[2];         // of one token, of a chunk
  Pace* pace_ = nullptr;  // of the run in progress
  uint32_t block_ = 0;    // step block of the latest run, or of what runs ahead
  bool ahead_ = false;    // all but the head of the step in that block was begun
  AttentionGroups attention_groups_;
  Status failed_;
};

// ---- Life ----------------------------------------------------------------------------------------

Status VulkanExecutor::create() {
  ORIEL_TRY(device_.create(options_));
  const VulkanApi& api = device_.api;
  const Log& log = options_.log;
  ORIEL_TRY(arenas_.take(device_, plan_, log));

  VkCommandPoolCreateInfo pool_info = {};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool_info.queueFamilyIndex = device_.caps.compute_family;
  ORIEL_TRY(checkVk(api.vkCreateCommandPool(device_.device, &pool_info, nullptr, &command_pool_),
                    "create a command pool", log));
  VkCommandBufferAllocateInfo commands_info = {};
  commands_info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  commands_info.commandPool = command_pool_;
  commands_info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  commands_info.commandBufferCount = kCommandBuffers;
  ORIEL_TRY(checkVk(api.vkAllocateCommandBuffers(device_.device, &commands_info, commands_),
                    "allocate command buffers", log));
  VkFenceCreateInfo fence_info = {};
  fence_info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  for (VkFence& fence : fences_) {
    ORIEL_TRY(checkVk(api.vkCreateFence(device_.device, &fence_info, nullptr, &fence),
                      "create a fence", log));
  }
  ORIEL_TRY(bindings_.createLayouts(device_, log));
  ORIEL_TRY(startPipelines());
  log.write(ORIEL_LOG_INFO, "running on %s (%s)", device_.caps.name, device_.caps.driver);
  return kOk;
}

VulkanExecutor::~VulkanExecutor() {
  pipelines_.join();
  for (uint32_t i = 0; i < kFences; ++i) {
    // Whatever went wrong: objects in use must not be destroyed.
    (void)wait(i);
    if (in_flight_[i]) {
      options_.log.write(ORIEL_LOG_WARNING,
                         "the device never finished its work; its memory cannot be given back");
      return;  // leaves the driver as it is, loaded and holding the device
    }
  }
  const VulkanApi& api = device_.api;
  if (device_.device != VK_NULL_HANDLE) {
    for (VkFence fence : fences_) {
      api.vkDestroyFence(device_.device, fence, nullptr);
    }
    api.vkDestroyCommandPool(device_.device, command_pool_, nullptr);
    for (uint32_t i = 0; i < plan_.opsBefore(kStepLists); ++i) {
      releaseTexelViews(device_, handles_[i].texels);
    }
    pipelines_.release(device_);
    pipeline_cache_.release(device_);
    bindings_.release(device_);
    arenas_.release(device_);
  }
  device_.destroy();
  device_.~VulkanDevice();
}

Status VulkanExecutor::settle(Status status) {
  if (status.code() == ORIEL_ERROR_DEVICE || status.code() == ORIEL_ERROR_TIMEOUT) {
    failed_ = status;
  }
  return status;
}

// ---- Submissions ---------------------------------------------------------------------------------

Status VulkanExecutor::submit(const VkCommandBuffer* commands, uint32_t count, uint32_t fence) {
  const VulkanApi& api = device_.api;
  ORIEL_TRY(wait(fence));  // a wait that failed may have left it in use
  ORIEL_TRY(checkVk(api.vkResetFences(device_.device, 1, &fences_[fence]), "reset a fence",
                    options_.log));
  VkSubmitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = count;
  info.pCommandBuffers = commands;
  ORIEL_TRY(checkVk(api.vkQueueSubmit(device_.queue, 1, &info, fences_[fence]),
                    "submit work to the device", options_.log));
  in_flight_[fence] = true;
  return kOk;
}

Status VulkanExecutor::wait(uint32_t fence) {
  if (!in_flight_[fence]) {
    return kOk;
  }
  const double deadline = nowMs() + options_.timeout_ms;
  VkResult result = VK_TIMEOUT;
  for (double left = options_.timeout_ms; result == VK_TIMEOUT && left > 0;
       left = deadline - nowMs()) {
    const uint64_t slice_ns = static_cast<uint64_t>(std::min(left, kWaitSliceMs) * 1e6);
    result = device_.api.vkWaitForFences(device_.device, 1, &fences_[fence], VK_TRUE, slice_ns);
  }
  if (result == VK_TIMEOUT) {
    return options_.log.fail(ORIEL_ERROR_TIMEOUT,
                             "%s did not answer within %u ms: free the model, then load it with a "
                             "longer timeout or a smaller chunk",
                             device_.caps.name, options_.timeout_ms);
  }
  // Finished, or lost: a lost device does no more work.
  in_flight_[fence] = result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST;
  return checkVk(result, "wait for the device", options_.log);
}

Status VulkanExecutor::submitAndWait(VkCommandBuffer commands) {
  ORIEL_TRY(submit(&commands, 1, kRunFence));
  return wait(kRunFence);
}

Status VulkanExecutor::run(StepRun what, const StopCheck& stop) {
  ORIEL_TRY(dropAhead());
  block_ = 0;
  attention_groups_.write(step());
  return endRun(submitStep(what, stop));
}

Status VulkanExecutor::endRun(Status status) {
  status = settle(status);
  for (uint32_t fence = kRunFence; fence < kFences && !status.ok(); ++fence) {
    (void)settle(wait(fence));  // the step block is in use until then
    if (in_flight_[fence]) {
      failed_ = status;  // and still is: nothing may follow
    }
  }
  return status;
}

// Waits for a flight, if it has not landed, and learns from how long it took.
Status VulkanExecutor::land(uint32_t flight) {
  if (in_flight_[kRunFence + flight]) {
    ORIEL_TRY(wait(kRunFence + flight));
    const double now_ms = nowMs();
    pace_->took(flights_[flight].work,
                now_ms - std::max(flights_[flight].sent_ms, landed_ms_));
    landed_ms_ = now_ms;
  }
  return kOk;
}

// As many pieces at a time as the device does in a moment.
Status VulkanExecutor::submitStep(StepRun what, const StopCheck& stop) {
  const StepCommands::Range body = steps_.body(what);
  const StepCommands::Range head = steps_.head(what);
  const uint32_t body_count = body.end - body.begin;
  const uint32_t count = body_count + head.end - head.begin;
  const StepLoad load = steps_.load(plan_, what, step());
  pace_ = &paces_[what == StepRun::kChunk || what == StepRun::kChunkHead ? 1 : 0];
  uint32_t flight = 0;
  for (uint32_t next = 0; next < count; flight = (flight + 1) % kFlights) {
    ORIEL_TRY(land(flight));
    if (next < body_count && stop()) {
      return ORIEL_ERROR_CANCELLED;
    }
    VkCommandBuffer commands[StepCommands::kMaxPieces];
    uint32_t n = 0;
    if (next == 0) {
      commands[n++] = steps_.copy(what);
    }
    const uint32_t first = next;
    double work = 0;
    for (; next < count; ++next) {
      const StepPiece& piece =
          steps_.piece(next < body_count ? body.begin + next : head.begin + next - body_count);
      const double more = load.of(piece, next < body_count);
      if (next != first && work + more > pace_->work()) {
        break;
      }
      commands[n++] = piece.commands;
      work += more;
    }
    flights_[flight] = {work, nowMs()};
    ORIEL_TRY(submit(commands, n, kRunFence + flight));
  }
  for (uint32_t i = 0; i < kFlights; ++i) {
    ORIEL_TRY(land((flight + i) % kFlights));
  }
  return kOk;
}

Status VulkanExecutor::runAhead(bool* more) {
  ORIEL_TRY(failed_);
  if (!ahead_) {
    block_ = 0;
    attention_groups_.write(step());
  }
  const Status status = endRun(submitAhead(more));
  ahead_ = status.ok() && *more;
  return status;
}

// The device is to have all of the next token but its head when it is done with this one; that head waits until
// the host has seen this one's result, so that it can be kept. A token is one submission then, and what is
// under way when a call is cancelled two of them at most.
Status VulkanExecutor::submitAhead(bool* more) {
  const StepCommands::Range body = steps_.body(StepRun::kDecode);
  const StepCommands::Range head = steps_.head(StepRun::kDecode);
  const StepLoad load = steps_.load(plan_, StepRun::kDecode, stepBlock(block_));
  double work = 0;
  for (uint32_t i = body.begin; i < body.end; ++i) {
    work += load.of(steps_.piece(i), true);
  }
  for (uint32_t i = head.begin; i < head.end; ++i) {
    work += load.of(steps_.piece(i), false);
  }
  *more = *more && work <= paces_[0].work();
  if (!*more && !ahead_) {
    return submitStep(StepRun::kDecode, StopCheck());
  }
  VkCommandBuffer commands[StepCommands::kMaxPieces];
  uint32_t n = 0;
  const auto add = [&](const StepCommands::Range& range) {
    for (uint32_t i = range.begin; i < range.end; ++i) {
      commands[n++] = steps_.piece(i).commands;
    }
  };
  if (!ahead_) {
    commands[n++] = steps_.copy(StepRun::kDecode);
    add(body);
  }
  add(head);
  const double sent_ms = nowMs();
  ORIEL_TRY(submit(commands, n, kRunFence));
  if (*more) {
    const uint32_t next = 1 - block_;
    attention_groups_.write(stepBlock(next));
    n = 0;
    commands[n++] = steps_.copyAhead(next);
    add(body);
    ORIEL_TRY(submit(commands, n, kAheadFence + next));
    block_ = next;
  }
  ORIEL_TRY(wait(kRunFence));
  landed_ms_ = nowMs();
  // When the device began is known only where it had nothing before; that it was slow, always.
  if (const double ms = landed_ms_ - sent_ms; !ahead_ || ms > kSubmissionMs) {
    paces_[0].took(work, ms);
  }
  return kOk;
}

Status VulkanExecutor::dropAhead() {
  ORIEL_TRY(failed_);
  if (!ahead_) {
    return kOk;
  }
  ahead_ = false;
  return endRun(wait(kAheadFence + block_));
}

Status VulkanExecutor::clearCache() {
  ORIEL_TRY(failed_);
  return settle(submitAndWait(commands_[kClearCommands]));
}

// ---- Loading -------------------------------------------------------------------------------------

Status VulkanExecutor::beginWrite(uint64_t bytes, void** piece) {
  ORIEL_TRY(failed_);
  const uint64_t half_bytes = plan_.upload.size_bytes / kUploadHalves;
  if (bytes > half_bytes) {
    return options_.log.fail(ORIEL_ERROR_INTERNAL,
                             "an upload larger than its ring: please report it");
  }
  ORIEL_TRY(settle(wait(upload_half_)));
  *piece = arenas_.mapped(plan_.upload) + upload_half_ * half_bytes;
  return kOk;
}

Status VulkanExecutor::endWrite(const BufferRef& destination, uint64_t offset_bytes,
                                uint64_t bytes) {
  ORIEL_TRY(failed_);
  if (offset_bytes > destination.size_bytes || bytes > destination.size_bytes - offset_bytes) {
    return options_.log.fail(ORIEL_ERROR_INTERNAL,
                             "an upload past its destination: please report it");
  }
  if (bytes == 0) {
    return kOk;
  }
  const uint32_t half = upload_half_;
  const VkCommandBuffer commands = commands_[kUploadCommands + half];
  ORIEL_TRY(settle(begin(commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)));
  // A restored cache overwrites what earlier steps wrote.
  recordBarrier(device_.api, commands, kCompute | kTransfer, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
          kTransfer, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  const VkBufferCopy region = {uploadHalfOffset(half), destination.offset_bytes + offset_bytes,
                               bytes};
  device_.api.vkCmdCopyBuffer(commands, arenas_.buffer(ArenaKind::kIo),
                              arenas_.buffer(destination.arena, destination.segment), 1, &region);
  ORIEL_TRY(settle(end(commands)));
  ORIEL_TRY(settle(submit(&commands, 1, half)));
  upload_half_ = (half + 1) % kUploadHalves;
  return kOk;
}

Status VulkanExecutor::finishWrites() {
  ORIEL_TRY(failed_);
  for (uint32_t half = 0; half < kUploadHalves; ++half) {
    ORIEL_TRY(settle(wait(half)));
  }
  return kOk;
}

Status VulkanExecutor::read(const BufferRef& source, uint64_t offset_bytes, uint64_t bytes,
                            const void** piece) {
  ORIEL_TRY(failed_);
  if (bytes > plan_.upload.size_bytes / kUploadHalves || offset_bytes > source.size_bytes ||
      bytes > source.size_bytes - offset_bytes) {
    return options_.log.fail(ORIEL_ERROR_INTERNAL, "a read past its source: please report it");
  }
  return copyToHost(source, offset_bytes, bytes, piece);
}

// To the beginning of the upload ring, whose uploads must be over.
Status VulkanExecutor::copyToHost(const BufferRef& source, uint64_t offset_bytes, uint64_t bytes,
                                  const void** piece) {
  ORIEL_TRY(finishWrites());
  const VkCommandBuffer commands = commands_[kUploadCommands];
  ORIEL_TRY(settle(begin(commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)));
  recordBarrier(device_.api, commands, kCompute | kTransfer, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
          kTransfer, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  const VkBufferCopy region = {source.offset_bytes + offset_bytes, uploadHalfOffset(0), bytes};
  device_.api.vkCmdCopyBuffer(commands, arenas_.buffer(source.arena, source.segment),
                              arenas_.buffer(ArenaKind::kIo), 1, &region);
  recordBarrier(device_.api, commands, kTransfer, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
          VK_ACCESS_HOST_READ_BIT);
  ORIEL_TRY(settle(end(commands)));
  ORIEL_TRY(settle(submitAndWait(commands)));
  *piece = arenas_.mapped(plan_.upload);
  return kOk;
}

Status VulkanExecutor::logits(const float** values) {
  const void* piece = nullptr;
  ORIEL_TRY(copyToHost(plan_.logits, 0, plan_.logits.size_bytes, &piece));
  *values = static_cast<const float*>(piece);
  return kOk;
}

Status VulkanExecutor::finishLoad() {
  ORIEL_TRY(finishWrites());
  ORIEL_TRY(settle(finishPipelines()));
  ORIEL_TRY(settle(bindings_.createSets(device_, arenas_, plan_, options_.log, handles_)));
  ORIEL_TRY(settle(recordSteps()));
  ORIEL_TRY(settle(recordClear()));
  ORIEL_TRY(settle(clearDeviceMemory()));

  // Some drivers compile at the first dispatch. No tokens: nothing but the head does any work.
  std::memset(step(), 0, static_cast<size_t>(plan_.step.size_bytes));
  ORIEL_TRY(run(StepRun::kDecode, StopCheck()));
  ORIEL_TRY(run(StepRun::kChunk, StopCheck()));
  paces_[0] = paces_[1] = Pace();
  return kOk;
}

Status VulkanExecutor::takeMatmul(MatmulUse use, WeightType type, uint32_t index) {
  ORIEL_TRY(failed_);
  if (choices_.candidate(use, type, index) == nullptr) {
    return options_.log.fail(ORIEL_ERROR_INTERNAL, "no such kernel candidate: please report it");
  }
  choices_.take(use, type, index);
  ORIEL_TRY(settle(choosePipelines()));
  pipelines_.start(device_, bindings_.layout(), pipeline_cache_.handle());
  ORIEL_TRY(settle(pipelines_.finish(options_.log)));
  return settle(recordSteps());
}

// Pipelines of every op, still to be compiled.
Status VulkanExecutor::choosePipelines() {
  for (uint32_t l = 0; l < kStepLists; ++l) {
    const StepList list = static_cast<StepList>(l);
    const uint32_t tokens = tokensOf(plan_, list);
    const double piece_work = pieceWork(plan_, list);
    OpHandles* handles = handles_ + plan_.opsBefore(l);
    for (uint32_t i = 0; i < plan_.n_ops[l]; ++i) {
      const Op& op = plan_.ops[l][i];
      Kernel kernel;
      ORIEL_TRY(chooseKernel(op, tokens, device_.caps, choices_, options_.log, &kernel));
      uint32_t pipeline = 0;
      ORIEL_TRY(pipelines_.add(kernel, options_.log, &pipeline));
      handles[i].pipeline = static_cast<uint16_t>(pipeline);
      attention_groups_.add(list, op, kernel);
      uint32_t offset = 0;
      const bool indirect = attention_groups_.covers(list, op, &offset);
      handles[i].parts = indirect ? 1 : partsOf(op, tokens, kernel, piece_work);
      handles[i].staging = kNoPipeline;
      if (kernel.staging != Staging::kNone) {
        if (4ull * kStagedUnitWords * op.push.matmul.units * productRows(op, tokens) >
            op.bindings[kMatmulStaged].size_bytes) {
          return options_.log.fail(ORIEL_ERROR_INTERNAL,
                                   "a row longer than planned: please report it");
        }
        ORIEL_TRY(chooseStaging(op, tokens, kernel.staging, device_.caps, options_.log, &kernel));
        ORIEL_TRY(pipelines_.add(kernel, options_.log, &pipeline));
        handles[i].staging = static_cast<uint16_t>(pipeline);
      }
    }
  }
  return kOk;
}

Status VulkanExecutor::startPipelines() {
  choices_.create(device_.caps, options_.cache_dir, options_.log);
  ORIEL_TRY(choosePipelines());
  ORIEL_TRY(pipeline_cache_.create(device_, options_.cache_dir, options_.log));
  pipelines_.start(device_, bindings_.layout(), pipeline_cache_.handle());
  return kOk;
}

Status VulkanExecutor::finishPipelines() {
  ORIEL_TRY(pipelines_.finish(options_.log));
  pipeline_cache_.survived();
  const PipelineStats stats = pipelines_.stats();
  options_.log.write(ORIEL_LOG_DEBUG, "%u pipelines (%s) in %.0f ms, %s%u of them from the cache",
                     stats.total, subgroupPath(device_.caps),
                     stats.ms, stats.known ? "" : "at least ", stats.from_cache);
  // The upload ring is idle by now.
  pipeline_cache_.save(device_, arenas_.mapped(plan_.upload), plan_.upload.size_bytes,
                       options_.log);
  return kOk;
}

// ---- Recording -----------------------------------------------------------------------------------

Status VulkanExecutor::recordSteps() {
  return steps_.record({&plan_, &device_, &arenas_, &pipelines_, &choices_, &attention_groups_,
                        bindings_.layout(), command_pool_, handles_, options_.log});
}

// Zeros in the whole arena; nothing for an arena of no bytes.
void recordFill(const VulkanApi& api, VkCommandBuffer commands, VkBuffer buffer) {
  if (buffer != VK_NULL_HANDLE) {
    api.vkCmdFillBuffer(commands, buffer, 0, VK_WHOLE_SIZE, 0);
  }
}

Status VulkanExecutor::recordClear() {
  const VkCommandBuffer commands = commands_[kClearCommands];
  ORIEL_TRY(begin(commands, 0));
  recordBarrier(device_.api, commands, kCompute | kTransfer,
                VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, kTransfer,
                VK_ACCESS_TRANSFER_WRITE_BIT);
  recordFill(device_.api, commands, arenas_.buffer(ArenaKind::kCache));
  return end(commands);
}

// Activations too: their padding is read by matmul and must be zero, never NaN.
Status VulkanExecutor::clearDeviceMemory() {
  const VkCommandBuffer commands = commands_[kUploadCommands];
  ORIEL_TRY(begin(commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT));
  recordFill(device_.api, commands, arenas_.buffer(ArenaKind::kCache));
  recordFill(device_.api, commands, arenas_.buffer(ArenaKind::kActivations));
  ORIEL_TRY(end(commands));
  return submitAndWait(commands);
}

static_assert(sizeof(VulkanExecutor) <= kExecutorObjectBytes, "the executor's planned size");

}  // namespace

Status createVulkanExecutor(const Plan& plan, const ExecutorOptions& options,
                            const ExecutorMemory& memory, Executor** executor) {
  *executor = nullptr;
  VulkanExecutor* vulkan = new (memory.object) VulkanExecutor(plan, options, memory.per_op);
  if (const Status status = vulkan->create(); !status.ok()) {
    vulkan->~VulkanExecutor();
    return status;
  }
  *executor = vulkan;
  return kOk;
}

}  // namespace oriel
