#include "vulkan/vulkan_executor.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <new>

#include "vulkan/attention_groups.h"
#include "vulkan/hazards.h"
#include "vulkan/memory.h"
#include "vulkan/pipeline_cache.h"
#include "vulkan/pipelines.h"
#include "vulkan/texel_views.h"

namespace oriel {
namespace {

/// Longest single wait; some drivers mishandle very long ones.
constexpr double kWaitSliceMs = 1000.0;
/// The push-constant range of every kernel; the Vulkan minimum is 128.
constexpr uint32_t kPushBytes = 64;
static_assert(sizeof(Op::Push) <= kPushBytes, "push constants");

/// Recorded command buffers: one per StepRun, one that clears the cache, one per half of the upload
/// ring.
constexpr uint32_t kStepRuns = 4;
constexpr uint32_t kClearCommands = kStepRuns;
constexpr uint32_t kUploadCommands = kClearCommands + 1;
constexpr uint32_t kUploadHalves = 2;
constexpr uint32_t kCommandBuffers = kUploadCommands + kUploadHalves;

/// One fence per upload half, one for everything else.
constexpr uint32_t kRunFence = kUploadHalves;
constexpr uint32_t kFences = kUploadHalves + 1;

/// What is kept per op, in ExecutorMemory.per_op: by list, then in order.
struct OpHandles {
  VkDescriptorSet set;
  uint32_t pipeline;
  uint32_t staging;  // pipeline that goes before, kNoPipeline: none
  VkBufferView texels[kMaxTexelViews];
};
constexpr uint32_t kNoPipeline = UINT32_MAX;
static_assert(sizeof(OpHandles) <= kExecutorBytesPerOp, "handles per op");

/// Of a kMatmul op; where its input in integers is.
constexpr uint32_t kMatmulInput = 3;
constexpr uint32_t kStagedBinding = 4;

constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
constexpr VkPipelineStageFlags kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kShaderUse = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;

class VulkanExecutor final : public Executor {
 public:
  VulkanExecutor(const Plan& plan, const ExecutorOptions& options, void* per_op)
      : plan_(plan), options_(options), handles_(static_cast<OpHandles*>(per_op)), device_() {
    std::fill_n(handles_, plan.n_ops[0] + plan.n_ops[1] + plan.n_ops[2], OpHandles());
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
  Status run(StepRun what) override;
  float* logits() override { return reinterpret_cast<float*>(arenas_.mapped(plan_.logits)); }
  Status clearCache() override;
  uint64_t allocatedBytes(ArenaKind kind) const override { return arenas_.allocatedBytes(kind); }
  const char* deviceName() const override { return device_.caps.name; }
  const char* driverName() const override { return device_.caps.driver; }
  void describeFeatures(char* text, size_t capacity) const override {
    oriel::describeFeatures(device_.caps, text, capacity);
  }
  const char* pathName() const override { return subgroupPath(device_.caps); }
  const char* matvecCandidate(WeightType type, uint32_t index) const override {
    const MatvecCandidate* const candidate = choices_.candidate(type, index);
    return candidate != nullptr ? candidate->name : nullptr;
  }
  uint32_t matvecStandard(WeightType type) const override { return choices_.standard(type); }
  bool matvecMeasured(WeightType type) const override { return choices_.measured(type); }
  Status takeMatvec(WeightType type, uint32_t index) override;
  bool keepMatvec(WeightType type, uint32_t index) override {
    return choices_.keep(type, index, options_.log);
  }

 private:
  uint32_t tokensOf(StepList list) const {
    return list == StepList::kChunk ? plan_.chunk_tokens : 1;
  }
  OpHandles* handlesOf(StepList list) const;

  uint64_t uploadHalfOffset(uint32_t half) const {
    return plan_.upload.offset_bytes + half * (plan_.upload.size_bytes / kUploadHalves);
  }

  Status createLayouts();
  Status choosePipelines();
  Status createPipelines();
  Status recordSteps();
  Status createDescriptorSets();
  void writeDescriptorSet(const Op& op, VkDescriptorSet set) const;
  Status writeTexelViews(const Op& op, OpHandles* handles) const;
  void releaseTexelViews();
  VkDescriptorBufferInfo bufferInfo(const BufferRef& piece) const;

  Status begin(VkCommandBuffer commands, VkCommandBufferUsageFlags flags) const;
  Status end(VkCommandBuffer commands) const;
  void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags written,
               VkPipelineStageFlags to, VkAccessFlags used) const;
  void recordDispatch(VkCommandBuffer commands, const Op& op, VkDescriptorSet set,
                      uint32_t pipeline) const;
  void recordList(VkCommandBuffer commands, StepList list) const;
  Status recordStep(StepRun what);
  Status recordClear();
  Status clearDeviceMemory();

  Status submit(VkCommandBuffer commands, uint32_t fence);
  Status wait(uint32_t fence);
  Status submitAndWait(VkCommandBuffer commands);
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
  MatvecChoices choices_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout pipeline_layout_ = VK_NULL_HANDLE;
  VkDescriptorPool descriptor_pool_ = VK_NULL_HANDLE;
  VkCommandPool command_pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_[kCommandBuffers] = {};
  VkFence fences_[kFences] = {};
  bool in_flight_[kFences] = {};
  uint32_t upload_half_ = 0;
  AttentionGroups attention_groups_;
  Status failed_;
};

OpHandles* VulkanExecutor::handlesOf(StepList list) const {
  OpHandles* handles = handles_;
  for (uint32_t i = 0; i < static_cast<uint32_t>(list); ++i) {
    handles += plan_.n_ops[i];
  }
  return handles;
}

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
  log.write(ORIEL_LOG_INFO, "running on %s (%s)", device_.caps.name, device_.caps.driver);
  return kOk;
}

VulkanExecutor::~VulkanExecutor() {
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
    api.vkDestroyDescriptorPool(device_.device, descriptor_pool_, nullptr);
    releaseTexelViews();
    pipelines_.release(device_);
    pipeline_cache_.release(device_);
    api.vkDestroyPipelineLayout(device_.device, pipeline_layout_, nullptr);
    api.vkDestroyDescriptorSetLayout(device_.device, set_layout_, nullptr);
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

Status VulkanExecutor::submit(VkCommandBuffer commands, uint32_t fence) {
  const VulkanApi& api = device_.api;
  ORIEL_TRY(wait(fence));  // a wait that failed may have left it in use
  ORIEL_TRY(checkVk(api.vkResetFences(device_.device, 1, &fences_[fence]), "reset a fence",
                    options_.log));
  VkSubmitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
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
  ORIEL_TRY(submit(commands, kRunFence));
  return wait(kRunFence);
}

Status VulkanExecutor::run(StepRun what) {
  ORIEL_TRY(failed_);
  attention_groups_.write(step());
  return settle(submitAndWait(commands_[static_cast<uint32_t>(what)]));
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
  barrier(commands, kCompute | kTransfer, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
          kTransfer, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  const VkBufferCopy region = {uploadHalfOffset(half), destination.offset_bytes + offset_bytes,
                               bytes};
  device_.api.vkCmdCopyBuffer(commands, arenas_.buffer(ArenaKind::kIo),
                              arenas_.buffer(destination.arena, destination.segment), 1, &region);
  ORIEL_TRY(settle(end(commands)));
  ORIEL_TRY(settle(submit(commands, half)));
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
  ORIEL_TRY(finishWrites());
  if (bytes > plan_.upload.size_bytes / kUploadHalves || offset_bytes > source.size_bytes ||
      bytes > source.size_bytes - offset_bytes) {
    return options_.log.fail(ORIEL_ERROR_INTERNAL, "a read past its source: please report it");
  }
  const VkCommandBuffer commands = commands_[kUploadCommands];
  ORIEL_TRY(settle(begin(commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)));
  barrier(commands, kCompute | kTransfer, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
          kTransfer, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  const VkBufferCopy region = {source.offset_bytes + offset_bytes, uploadHalfOffset(0), bytes};
  device_.api.vkCmdCopyBuffer(commands, arenas_.buffer(source.arena, source.segment),
                              arenas_.buffer(ArenaKind::kIo), 1, &region);
  barrier(commands, kTransfer, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
          VK_ACCESS_HOST_READ_BIT);
  ORIEL_TRY(settle(end(commands)));
  ORIEL_TRY(settle(submitAndWait(commands)));
  *piece = arenas_.mapped(plan_.upload);
  return kOk;
}

Status VulkanExecutor::finishLoad() {
  ORIEL_TRY(finishWrites());
  ORIEL_TRY(settle(createLayouts()));
  ORIEL_TRY(settle(createPipelines()));
  ORIEL_TRY(settle(createDescriptorSets()));
  ORIEL_TRY(settle(recordSteps()));
  ORIEL_TRY(settle(recordClear()));
  ORIEL_TRY(settle(clearDeviceMemory()));

  // Some drivers compile at the first dispatch. No tokens: nothing but the head does any work.
  std::memset(step(), 0, static_cast<size_t>(plan_.step.size_bytes));
  ORIEL_TRY(run(StepRun::kDecode));
  return run(StepRun::kChunk);
}

Status VulkanExecutor::createLayouts() {
  const VulkanApi& api = device_.api;
  VkDescriptorSetLayoutBinding bindings[kMaxOpBindings + kMaxTexelViews] = {};
  const uint32_t n_bindings = kMaxOpBindings + (device_.caps.readsTexels() ? kMaxTexelViews : 0);
  for (uint32_t i = 0; i < n_bindings; ++i) {
    bindings[i].binding = i;
    bindings[i].descriptorType = i < kMaxOpBindings ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
                                                    : VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER;
    bindings[i].descriptorCount = 1;
    bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  VkDescriptorSetLayoutCreateInfo set_info = {};
  set_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set_info.bindingCount = n_bindings;
  set_info.pBindings = bindings;
  ORIEL_TRY(checkVk(
      api.vkCreateDescriptorSetLayout(device_.device, &set_info, nullptr, &set_layout_),
      "create a descriptor set layout", options_.log));
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  VkPipelineLayoutCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.setLayoutCount = 1;
  info.pSetLayouts = &set_layout_;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  return checkVk(api.vkCreatePipelineLayout(device_.device, &info, nullptr, &pipeline_layout_),
                 "create a pipeline layout", options_.log);
}

Status VulkanExecutor::takeMatvec(WeightType type, uint32_t index) {
  ORIEL_TRY(failed_);
  if (choices_.candidate(type, index) == nullptr) {
    return options_.log.fail(ORIEL_ERROR_INTERNAL, "no such kernel candidate: please report it");
  }
  choices_.take(type, index);
  ORIEL_TRY(settle(choosePipelines()));
  ORIEL_TRY(settle(pipelines_.compile(device_, pipeline_layout_, pipeline_cache_.handle(),
                                      options_.log)));
  return settle(recordSteps());
}

// Pipelines of every op, still to be compiled.
Status VulkanExecutor::choosePipelines() {
  for (uint32_t l = 0; l < kStepLists; ++l) {
    const StepList list = static_cast<StepList>(l);
    OpHandles* handles = handlesOf(list);
    for (uint32_t i = 0; i < plan_.n_ops[l]; ++i) {
      Kernel kernel;
      const Op& op = plan_.ops[l][i];
      ORIEL_TRY(chooseKernel(op, tokensOf(list), device_.caps, choices_, options_.log, &kernel));
      ORIEL_TRY(pipelines_.add(kernel, options_.log, &handles[i].pipeline));
      attention_groups_.add(list, op, kernel);
      handles[i].staging = kNoPipeline;
      if (kernel.staged) {
        if (4ull * kStagedUnitWords * op.push.matmul.units > plan_.staged.size_bytes) {
          return options_.log.fail(ORIEL_ERROR_INTERNAL,
                                   "a row longer than planned: please report it");
        }
        ORIEL_TRY(chooseStaging(op, device_.caps, options_.log, &kernel));
        ORIEL_TRY(pipelines_.add(kernel, options_.log, &handles[i].staging));
      }
    }
  }
  return kOk;
}

Status VulkanExecutor::createPipelines() {
  choices_.create(device_.caps, options_.cache_dir, options_.log);
  ORIEL_TRY(choosePipelines());
  ORIEL_TRY(pipeline_cache_.create(device_, options_.cache_dir, options_.log));
  const double begin_ms = nowMs();
  ORIEL_TRY(pipelines_.compile(device_, pipeline_layout_, pipeline_cache_.handle(), options_.log));
  options_.log.write(ORIEL_LOG_DEBUG, "%u pipelines (%s) in %.0f ms", pipelines_.count(),
                     subgroupPath(device_.caps),
                     nowMs() - begin_ms);
  // The upload ring is idle by now.
  pipeline_cache_.save(device_, arenas_.mapped(plan_.upload), plan_.upload.size_bytes,
                       options_.log);
  return kOk;
}

Status VulkanExecutor::createDescriptorSets() {
  const VulkanApi& api = device_.api;
  const uint32_t n_ops = plan_.n_ops[0] + plan_.n_ops[1] + plan_.n_ops[2];
  if (n_ops == 0) {
    return kOk;
  }
  const VkDescriptorPoolSize sizes[] = {
      {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, n_ops * kMaxOpBindings},
      {VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, n_ops * kMaxTexelViews}};
  VkDescriptorPoolCreateInfo pool_info = {};
  pool_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  pool_info.maxSets = n_ops;
  pool_info.poolSizeCount = device_.caps.readsTexels() ? 2 : 1;
  pool_info.pPoolSizes = sizes;
  ORIEL_TRY(
      checkVk(api.vkCreateDescriptorPool(device_.device, &pool_info, nullptr, &descriptor_pool_),
              "create a descriptor pool", options_.log));
  for (uint32_t l = 0; l < kStepLists; ++l) {
    OpHandles* handles = handlesOf(static_cast<StepList>(l));
    for (uint32_t i = 0; i < plan_.n_ops[l]; ++i) {
      VkDescriptorSetAllocateInfo info = {};
      info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
      info.descriptorPool = descriptor_pool_;
      info.descriptorSetCount = 1;
      info.pSetLayouts = &set_layout_;
      ORIEL_TRY(checkVk(api.vkAllocateDescriptorSets(device_.device, &info, &handles[i].set),
                        "allocate a descriptor set", options_.log));
      writeDescriptorSet(plan_.ops[l][i], handles[i].set);
      if (device_.caps.readsTexels()) {
        ORIEL_TRY(writeTexelViews(plan_.ops[l][i], &handles[i]));
      }
    }
  }
  return kOk;
}

VkDescriptorBufferInfo VulkanExecutor::bufferInfo(const BufferRef& piece) const {
  return {arenas_.buffer(piece.arena, piece.segment), piece.offset_bytes, piece.size_bytes};
}

void VulkanExecutor::writeDescriptorSet(const Op& op, VkDescriptorSet set) const {
  VkDescriptorBufferInfo buffers[kMaxOpBindings];
  for (uint32_t i = 0; i < kMaxOpBindings; ++i) {
    // Bindings that a kernel does not have must hold something valid; no shader touches it.
    buffers[i] = bufferInfo(i < op.n_bindings ? op.bindings[i] : plan_.device_step);
  }
  if (op.kind == OpKind::kMatmul && plan_.staged.size_bytes != 0) {
    buffers[kStagedBinding] = bufferInfo(plan_.staged);
  }
  VkWriteDescriptorSet write = {};
  write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
  write.dstSet = set;
  write.descriptorCount = kMaxOpBindings;  // consecutive bindings
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.pBufferInfo = buffers;
  device_.api.vkUpdateDescriptorSets(device_.device, 1, &write, 0, nullptr);
}

Status VulkanExecutor::writeTexelViews(const Op& op, OpHandles* handles) const {
  TexelView views[kMaxTexelViews];
  const uint32_t n_views = texelViewsOf(op.kind, views);
  if (n_views == 0) {
    return kOk;
  }
  for (uint32_t i = 0; i < n_views; ++i) {
    const BufferRef& piece = op.bindings[views[i].binding];
    ORIEL_TRY(createTexelView(device_, arenas_.buffer(piece.arena, piece.segment), piece,
                              views[i].format, options_.log, &handles->texels[i]));
  }
  VkWriteDescriptorSet write = {};
  write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
  write.dstSet = handles->set;
  write.dstBinding = kMaxOpBindings;
  write.descriptorCount = n_views;  // consecutive bindings
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER;
  write.pTexelBufferView = handles->texels;
  device_.api.vkUpdateDescriptorSets(device_.device, 1, &write, 0, nullptr);
  return kOk;
}

void VulkanExecutor::releaseTexelViews() {
  if (!device_.caps.readsTexels()) {
    return;
  }
  OpHandles* handles = handlesOf(StepList::kDecode);
  for (uint32_t i = 0; i < plan_.n_ops[0] + plan_.n_ops[1] + plan_.n_ops[2]; ++i) {
    for (VkBufferView view : handles[i].texels) {
      device_.api.vkDestroyBufferView(device_.device, view, nullptr);
    }
  }
}

// ---- Recording -----------------------------------------------------------------------------------

Status VulkanExecutor::begin(VkCommandBuffer commands, VkCommandBufferUsageFlags flags) const {
  VkCommandBufferBeginInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = flags;
  return checkVk(device_.api.vkBeginCommandBuffer(commands, &info), "begin a command buffer",
                 options_.log);
}

Status VulkanExecutor::end(VkCommandBuffer commands) const {
  return checkVk(device_.api.vkEndCommandBuffer(commands), "end a command buffer", options_.log);
}

void VulkanExecutor::barrier(VkCommandBuffer commands, VkPipelineStageFlags from,
                             VkAccessFlags written, VkPipelineStageFlags to,
                             VkAccessFlags used) const {
  VkMemoryBarrier memory = {};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = written;
  memory.dstAccessMask = used;
  device_.api.vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void VulkanExecutor::recordDispatch(VkCommandBuffer commands, const Op& op, VkDescriptorSet set,
                                    uint32_t pipeline) const {
  const VulkanApi& api = device_.api;
  api.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_.at(pipeline));
  api.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_layout_, 0, 1,
                              &set, 0, nullptr);
  api.vkCmdPushConstants(commands, pipeline_layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, op.push_bytes,
                         &op.push);
}

Status VulkanExecutor::recordSteps() {
  for (const StepRun what :
       {StepRun::kDecode, StepRun::kChunk, StepRun::kChunkHead, StepRun::kHead}) {
    ORIEL_TRY(recordStep(what));
  }
  return kOk;
}

// Whether two products, one after the other, have the same input, which the first leaves as it is.
bool shareInput(const Op& later, const Op& earlier) {
  const BufferRef& a = later.bindings[kMatmulInput];
  const BufferRef& b = earlier.bindings[kMatmulInput];
  return a.arena == b.arena && a.segment == b.segment && a.offset_bytes == b.offset_bytes &&
         a.size_bytes == b.size_bytes && later.push.matmul.units == earlier.push.matmul.units &&
         !mustWait(later, earlier);
}

void VulkanExecutor::recordList(VkCommandBuffer commands, StepList list) const {
  const VulkanApi& api = device_.api;
  const Op* ops = plan_.ops[static_cast<uint32_t>(list)];
  const OpHandles* handles = handlesOf(list);
  uint32_t running = 0;  // the first op since the last barrier
  for (uint32_t i = 0; i < plan_.n_ops[static_cast<uint32_t>(list)]; ++i) {
    bool wait = false;
    for (uint32_t earlier = running; earlier < i && !wait; ++earlier) {
      wait = mustWait(ops[i], ops[earlier]);
    }
    const bool staged = handles[i].staging != kNoPipeline;
    const bool stages = staged && !(i > 0 && handles[i - 1].staging != kNoPipeline &&
                                    shareInput(ops[i], ops[i - 1]));
    for (uint32_t earlier = running; stages && earlier < i && !wait; ++earlier) {
      wait = handles[earlier].staging != kNoPipeline;  // it may still read what was staged for it
    }
    if (wait) {
      barrier(commands, kCompute, VK_ACCESS_SHADER_WRITE_BIT, kCompute, kShaderUse);
      running = i;
    }
    Kernel kernel;
    // Was chosen before, by createPipelines.
    if (stages) {
      (void)chooseStaging(ops[i], device_.caps, options_.log, &kernel);
      recordDispatch(commands, ops[i], handles[i].set, handles[i].staging);
      api.vkCmdDispatch(commands, kernel.grid[0], 1, 1);
      barrier(commands, kCompute, VK_ACCESS_SHADER_WRITE_BIT, kCompute, kShaderUse);
      running = i;
    }
    (void)chooseKernel(ops[i], tokensOf(list), device_.caps, choices_, options_.log, &kernel);
    recordDispatch(commands, ops[i], handles[i].set, handles[i].pipeline);
    uint32_t offset = 0;
    if (attention_groups_.covers(list, ops[i], &offset)) {
      api.vkCmdDispatchIndirect(commands, arenas_.buffer(plan_.step.arena),
                                plan_.step.offset_bytes + offset);
    } else {
      api.vkCmdDispatch(commands, kernel.grid[0], kernel.grid[1], kernel.grid[2]);
    }
  }
  barrier(commands, kCompute, VK_ACCESS_SHADER_WRITE_BIT, kCompute, kShaderUse);
}

Status VulkanExecutor::recordStep(StepRun what) {
  const VkCommandBuffer commands = commands_[static_cast<uint32_t>(what)];
  ORIEL_TRY(begin(commands, 0));
  // After everything earlier: uploads, fills, the step before.
  barrier(commands, kCompute | kTransfer, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
          kCompute | kTransfer, kShaderUse | VK_ACCESS_TRANSFER_WRITE_BIT);
  const bool chunk = what == StepRun::kChunk || what == StepRun::kChunkHead;
  VkBufferCopy region = {};
  region.srcOffset = plan_.step.offset_bytes;
  region.dstOffset = plan_.device_step.offset_bytes;
  region.size = chunk ? plan_.step.size_bytes : plan_.step_decode_bytes;
  device_.api.vkCmdCopyBuffer(commands, arenas_.buffer(plan_.step.arena),
                              arenas_.buffer(plan_.device_step.arena), 1, &region);
  barrier(commands, kTransfer, VK_ACCESS_TRANSFER_WRITE_BIT, kCompute, VK_ACCESS_SHADER_READ_BIT);
  if (what != StepRun::kHead) {
    recordList(commands, chunk ? StepList::kChunk : StepList::kDecode);
  }
  if (what != StepRun::kChunk) {
    recordList(commands, StepList::kHead);
  }
  barrier(commands, kCompute, VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
          VK_ACCESS_HOST_READ_BIT);
  return end(commands);
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
  barrier(commands, kCompute | kTransfer, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
          kTransfer, VK_ACCESS_TRANSFER_WRITE_BIT);
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
