#include "vulkan/step_commands.h"

#include <algorithm>
#include <cstddef>

#include "plan/codebooks.h"
#include "vulkan/kernels.h"

namespace oriel_internal {

void recordBarrier(const VulkanApi& api, VkCommandBuffer commands, VkPipelineStageFlags from,
                   VkAccessFlags written, VkPipelineStageFlags to, VkAccessFlags used) {
  VkMemoryBarrier memory = {};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = written;
  memory.dstAccessMask = used;
  api.vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

Status beginCommands(const VulkanDevice& device, VkCommandBuffer commands,
                     VkCommandBufferUsageFlags flags, const Log& log) {
  VkCommandBufferBeginInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = flags;
  return checkVk(device.api.vkBeginCommandBuffer(commands, &info), "begin a command buffer", log);
}

Status endCommands(const VulkanDevice& device, VkCommandBuffer commands, const Log& log) {
  return checkVk(device.api.vkEndCommandBuffer(commands), "end a command buffer", log);
}

namespace {

// True if two products use disjoint ranges of experts. Experts in slots may coincide.
bool ofOtherExperts(const Op& a, const Op& b) {
  if (a.kind != OpKind::kExpertMatmul || b.kind != OpKind::kExpertMatmul) {
    return false;
  }
  const ExpertMatmulPush& x = a.push.expert_matmul;
  const ExpertMatmulPush& y = b.push.expert_matmul;
  return x.has_slots == 0 && y.has_slots == 0 &&
         (x.first + x.count <= y.first || y.first + y.count <= x.first);
}

// True if two ops write different words of the same piece, and read different ones. Slices of
// an embedding have different tokens, experts different rows.
bool apart(const Op& a, const Op& b) {
  if (!samePlace(a.bindings[kOpOut], b.bindings[kOpOut])) {
    return false;
  }
  if (a.kind == OpKind::kEmbed && b.kind == OpKind::kEmbed) {
    return true;
  }
  if (ofOtherExperts(a, b)) {
    return true;
  }
  const OpColumns x = opTraits(a.kind).columns(a);
  const OpColumns y = opTraits(b.kind).columns(b);
  return x.stride == y.stride && (x.end <= y.first || y.end <= x.first);
}

// True if two products stage their inputs in the same piece. The staging code handles that hazard.
bool bothStage(const Op& a, uint32_t i, const Op& b, uint32_t j) {
  return a.kind == OpKind::kMatmul && b.kind == OpKind::kMatmul && i == kMatmulStaged &&
         j == kMatmulStaged && shareInput(a, b);
}

}  // namespace

bool shareInput(const Op& a, const Op& b) {
  return a.n_bindings > kMatmulStaged && b.n_bindings > kMatmulStaged &&
         samePlace(a.bindings[kMatmulInput], b.bindings[kMatmulInput]) &&
         samePlace(a.bindings[kMatmulStaged], b.bindings[kMatmulStaged]) &&
         a.push.matmul.units == b.push.matmul.units &&
         a.push.matmul.in_stride == b.push.matmul.in_stride;
}

bool mustWait(const Op& later, const Op& earlier) {
  for (uint32_t i = 0; i < later.n_bindings; ++i) {
    for (uint32_t j = 0; j < earlier.n_bindings; ++j) {
      if ((writes(later, i) || writes(earlier, j)) &&
          overlap(later.bindings[i], earlier.bindings[j]) &&
          !(i == kOpOut && j == kOpOut && apart(later, earlier)) &&
          !bothStage(later, i, earlier, j)) {
        return true;
      }
    }
  }
  return false;
}

namespace {

/// The push-constant range of every kernel; the Vulkan minimum is 128.
constexpr uint32_t kPushBytes = kMakerPushBytes + sizeof(Op::Push);
static_assert(kPushBytes <= 128 && sizeof(Op::Push) <= kMakerPushBytes, "push constants");

VkDescriptorBufferInfo bufferInfo(const DeviceArenas& arenas, const BufferRef& piece) {
  return {arenas.buffer(piece.arena, piece.segment), piece.offset_bytes, piece.size_bytes};
}

// False if the op's kernel reads no codebook.
bool findCodebook(const DeviceArenas& arenas, const Plan& plan, const Op& op,
                  VkDescriptorBufferInfo* info) {
  uint32_t offset_bytes = 0, bytes = 0;
  if (plan.codebooks.size_bytes == 0 || !codebookOf(op.weights, &offset_bytes, &bytes)) {
    return false;
  }
  BufferRef piece = plan.codebooks.resized(bytes);
  piece.offset_bytes += offset_bytes;
  *info = bufferInfo(arenas, piece);
  return true;
}

static_assert(kCodebookBinding == kMaxOpBindings + kMaxTexelViews, "shared with shaders");

void writeSet(const VulkanDevice& device, const DeviceArenas& arenas, const Plan& plan,
              const Op& op, VkDescriptorSet set) {
  VkDescriptorBufferInfo buffers[kMaxOpBindings];
  for (uint32_t i = 0; i < kMaxOpBindings; ++i) {
    // Unused bindings must hold a valid buffer; no shader accesses it.
    buffers[i] = bufferInfo(arenas, i < op.n_bindings ? op.bindings[i] : plan.device_step);
  }
  VkWriteDescriptorSet writes[2] = {};
  writes[0].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
  writes[0].dstSet = set;
  writes[0].descriptorCount = kMaxOpBindings;  // consecutive bindings
  writes[0].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  writes[0].pBufferInfo = buffers;
  VkDescriptorBufferInfo codebook = {};
  const bool has_codebook = findCodebook(arenas, plan, op, &codebook);
  writes[1] = writes[0];
  writes[1].dstBinding = kCodebookBinding;
  writes[1].descriptorCount = 1;
  writes[1].descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
  writes[1].pBufferInfo = &codebook;
  device.api.vkUpdateDescriptorSets(device.device, has_codebook ? 2 : 1, writes, 0, nullptr);
}

}  // namespace

Status Bindings::createLayouts(const VulkanDevice& device, const Log& log) {
  VkDescriptorSetLayoutBinding bindings[kMaxOpBindings + kMaxTexelViews + 1] = {};
  uint32_t n_bindings = kMaxOpBindings + (device.caps.readsTexels() ? kMaxTexelViews : 0);
  for (uint32_t i = 0; i < n_bindings; ++i) {
    bindings[i].binding = i;
    bindings[i].descriptorType = i < kMaxOpBindings ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
                                                    : VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER;
    bindings[i].descriptorCount = 1;
    bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  bindings[n_bindings++] = {kCodebookBinding, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1,
                            VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo set_info = {};
  set_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set_info.bindingCount = n_bindings;
  set_info.pBindings = bindings;
  ORIEL_TRY(checkMade(
      device.api.vkCreateDescriptorSetLayout(device.device, &set_info, nullptr, &set_layout_),
      &set_layout_, "create a descriptor set layout", log));
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  VkPipelineLayoutCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.setLayoutCount = 1;
  info.pSetLayouts = &set_layout_;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  return checkMade(
      device.api.vkCreatePipelineLayout(device.device, &info, nullptr, &pipeline_layout_),
      &pipeline_layout_, "create a pipeline layout", log);
}

Status Bindings::createSets(const VulkanDevice& device, const DeviceArenas& arenas,
                            const Plan& plan, const Log& log, OpHandles* handles) {
  const VulkanApi& api = device.api;
  const uint32_t n_ops = plan.opsBefore(kStepLists) - hostOps(plan);
  if (n_ops == 0) {
    return kOk;
  }
  const VkDescriptorPoolSize sizes[] = {
      {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, n_ops * kMaxOpBindings},
      {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, n_ops},
      {VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, n_ops * kMaxTexelViews}};
  VkDescriptorPoolCreateInfo pool_info = {};
  pool_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  pool_info.maxSets = n_ops;
  pool_info.poolSizeCount = device.caps.readsTexels() ? 3 : 2;
  pool_info.pPoolSizes = sizes;
  ORIEL_TRY(checkMade(api.vkCreateDescriptorPool(device.device, &pool_info, nullptr, &pool_),
                      &pool_, "create a descriptor pool", log));
  for (uint32_t l = 0; l < kStepLists; ++l) {
    for (uint32_t i = 0; i < plan.n_ops[l]; ++i) {
      if (isDoneByHost(plan.ops[l][i])) {
        continue;
      }
      const Op* const maker = makerOf(plan.ops[l], i, handles);
      const Op op = maker != nullptr ? withMaker(plan.ops[l][i], *maker) : plan.ops[l][i];
      VkDescriptorSetAllocateInfo info = {};
      info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
      info.descriptorPool = pool_;
      info.descriptorSetCount = 1;
      info.pSetLayouts = &set_layout_;
      ORIEL_TRY(checkVk(api.vkAllocateDescriptorSets(device.device, &info, &handles->set),
                        "allocate a descriptor set", log));
      writeSet(device, arenas, plan, op, handles->set);
      ORIEL_TRY(writeTexelViews(device, arenas, op, handles->set, log, handles->texels));
      ++handles;
    }
  }
  return kOk;
}

void Bindings::releaseSets(const VulkanDevice& device) {
  if (pool_ != VK_NULL_HANDLE) {
    device.api.vkDestroyDescriptorPool(device.device, pool_, nullptr);
    pool_ = VK_NULL_HANDLE;
  }
}

void Bindings::release(const VulkanDevice& device) {
  releaseSets(device);
  device.api.vkDestroyPipelineLayout(device.device, pipeline_layout_, nullptr);
  device.api.vkDestroyDescriptorSetLayout(device.device, set_layout_, nullptr);
}

namespace {

/// Pieces of a list: enough that each is short even if a step takes seconds.
constexpr uint32_t kMostPieces[kStepLists] = {16, 88, 8, 32, 16, 16, 8, 2};
constexpr uint32_t kCopies = 4;
static_assert(16 + 88 + 8 + 32 + 16 + 16 + 8 + 2 + kStepLists + 2 + kCopies <=
                  StepCommands::kMaxPieces,
              "one more of each for what rounds, one where memories are filled, one of norms");
/// Shorter pieces only add overhead.
constexpr double kLeastPieceWork = 1 << 23;
/// The same on a discrete GPU, which needs a few milliseconds for this. Most models decode as one piece.
constexpr double kLeastDiscretePieceWork = 1 << 30;

uint32_t hostOps(const Plan& plan, uint32_t list) {
  return static_cast<uint32_t>(
      std::count_if(plan.ops[list], plan.ops[list] + plan.n_ops[list], isDoneByHost));
}

// Number of such ops in the lists before `list`.
uint32_t opsWithKernels(const Plan& plan, uint32_t list) {
  uint32_t count = plan.opsBefore(list);
  for (uint32_t i = 0; i < list; ++i) {
    count -= hostOps(plan, i);
  }
  return count;
}

}  // namespace

uint32_t hostOps(const Plan& plan) {
  return plan.opsBefore(kStepLists) - opsWithKernels(plan, kStepLists);
}

const Op* makerOf(const Op* ops, uint32_t index, const OpHandles* handles) {
  const Op& op = ops[index];
  while (index != 0 && ops[index].kind == OpKind::kMatmul) {
    --index;
    if (isDoneByHost(ops[index])) {
      return nullptr;
    }
    if ((--handles)->parts == 0) {
      return op.kind == OpKind::kMatmul &&
                     samePlace(ops[index].bindings[kOpOut], op.bindings[kMatmulInput])
                 ? &ops[index]
                 : nullptr;
    }
  }
  return nullptr;
}

double pieceWork(const Plan& plan, StepList list, const DeviceCaps& caps) {
  const uint32_t l = static_cast<uint32_t>(list);
  double work = 0;
  for (uint32_t i = 0; i < plan.n_ops[l]; ++i) {
    work += opWork(plan.ops[l][i], plan.rows(list)).most();
  }
  return std::max(work / kMostPieces[l], caps.type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU
                                             ? kLeastDiscretePieceWork
                                             : kLeastPieceWork);
}

// Along the second axis: rows of a product, tokens of everything else. matmul.comp counts its rows over
// the whole grid when there is a third.
uint32_t partsOf(const Op& op, uint32_t rows, const Kernel& kernel, double piece_work) {
  if (kernel.grid[2] != 1 || !kernel.divisible) {
    return 1;
  }
  const double parts = opWork(op, rows).most() / piece_work;
  return std::max(1u, static_cast<uint32_t>(std::min(parts + 0.5, double{1} * kernel.grid[1])));
}

StepCommands::Range StepCommands::body(StepRun what) const {
  switch (what) {
    case StepRun::kDecode:
      return decode_;
    case StepRun::kChunk:
    case StepRun::kChunkHead:
    case StepRun::kChunkNorms:
      return chunk_;
    case StepRun::kFill:
      return fill_;
    case StepRun::kTail:
      return tail_;
    case StepRun::kBatch:
      return batch_;
    case StepRun::kDraft:
      return draft_;
    case StepRun::kHead:
      break;
  }
  return {};
}

StepLoad StepCommands::load(const Plan& plan, StepRun what, const void* step) {
  const StepBlock block(step);
  const uint32_t room = hasBody(what) ? plan.rows(bodyOf(what)) : plan.chunk_tokens;
  const uint32_t tokens = std::min(block.header().n_tokens, room);
  const uint32_t outputs = block.header().n_outputs;
  const uint32_t head_room = plan.rows(headOf(what, outputs));
  StepLoad load;
  load.share = double{1} * tokens / room;
  load.head_share = double{1} * std::clamp(outputs, 1u, head_room) / head_room;
  for (uint32_t view = 0; tokens != 0 && view < std::min(plan.n_views, kMaxViews); ++view) {
    const View& seen = block.view(tokens - 1, view);
    load.seen[view] = double{1} * seen.n_sinks + seen.count;
  }
  return load;
}

Status StepCommands::record(const Source& source) {
  count_ = 0;
  more_pieces_ = source.more_pieces;
  ORIEL_TRY(recordList(source, StepList::kDecode, &decode_));
  fill_ = {};
  ORIEL_TRY(recordList(source, StepList::kChunk, &chunk_));
  if (source.plan->fill_ops == source.plan->n_ops[static_cast<uint32_t>(StepList::kChunk)]) {
    fill_ = chunk_;
  }
  ORIEL_TRY(recordList(source, StepList::kTail, &tail_));
  ORIEL_TRY(recordList(source, StepList::kHead, &head_));
  const Plan& plan = *source.plan;
  if (plan.output_rows > 1) {
    ORIEL_TRY(recordList(source, StepList::kOutputs, &outputs_));
  } else {
    outputs_ = head_;
  }
  if (plan.batch_rows > 1) {
    ORIEL_TRY(recordList(source, StepList::kBatch, &batch_));
    ORIEL_TRY(recordList(source, StepList::kBatchHead, &batch_head_));
  }
  ORIEL_TRY(recordList(source, StepList::kDraft, &draft_));
  ORIEL_TRY(recordNorms(source));
  ORIEL_TRY(recordStepCopy(source, plan.step, plan.step.size_bytes, false, &copy_chunk_));
  ORIEL_TRY(recordStepCopy(source, plan.step, plan.step_decode_bytes, false, &copy_decode_));
  for (uint32_t i = 0; i < 2 && plan.step_ahead.size_bytes != 0; ++i) {
    ORIEL_TRY(recordStepCopy(source, i == 0 ? plan.step : plan.step_ahead, plan.step_decode_bytes,
                             true, &copy_ahead_[i]));
  }
  return kOk;
}

Status StepCommands::open(const Source& source, VkCommandBufferUsageFlags usage) {
  const uint32_t most = kMaxPieces + source.n_more_pieces;
  if (count_ == most) {
    return source.log.fail(ORIEL_ERROR_INTERNAL, "a step of more than %u pieces: please report it",
                           most);
  }
  ++count_;
  StepPiece* const piece = &last();
  if (piece->commands == VK_NULL_HANDLE) {
    VkCommandBufferAllocateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = source.pool;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    ORIEL_TRY(checkVk(
        source.device->api.vkAllocateCommandBuffers(source.device->device, &info, &piece->commands),
        "allocate command buffers", source.log));
  }
  piece->fixed = 0;
  std::fill_n(piece->per_seen, kMaxViews, 0.0f);
  piece->host_op = StepPiece::kNoOp;
  return beginCommands(*source.device, piece->commands, usage, source.log);
}

Status StepCommands::close(const Source& source) {
  return endCommands(*source.device, commands(), source.log);
}

Status StepCommands::recordStepCopy(const Source& source, const BufferRef& step, uint64_t bytes,
                                    bool of_best, uint32_t* index) {
  const VulkanApi& api = source.device->api;
  const Plan& plan = *source.plan;
  *index = count_;
  ORIEL_TRY(open(source));
  // Waits for all earlier work: uploads, fills, the previous step.
  recordBarrier(api, commands(), kCompute | kTransfer | kIndirect,
                VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, kCompute | kTransfer,
                kShaderUse | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  const VkBuffer to = source.arenas->buffer(plan.device_step.arena);
  const VkBufferCopy region = {step.offset_bytes, plan.device_step.offset_bytes, bytes};
  api.vkCmdCopyBuffer(commands(), source.arenas->buffer(step.arena), to, 1, &region);
  if (of_best) {
    recordBarrier(api, commands(), kTransfer, VK_ACCESS_TRANSFER_WRITE_BIT, kTransfer,
                  VK_ACCESS_TRANSFER_WRITE_BIT);
    const VkBufferCopy token = {
        plan.top.offset_bytes + offsetof(TopTokens, best) + offsetof(TopToken, id),
        plan.device_step.offset_bytes + sizeof(StepHeader) + offsetof(TokenStep, token),
        sizeof(TokenStep::token)};
    api.vkCmdCopyBuffer(commands(), source.arenas->buffer(plan.top.arena), to, 1, &token);
  }
  recordBarrier(api, commands(), kTransfer, VK_ACCESS_TRANSFER_WRITE_BIT, kCompute | kIndirect,
                VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_INDIRECT_COMMAND_READ_BIT);
  return close(source);
}

void StepCommands::recordBindings(const Source& source, const Op& op, const OpHandles& handles,
                                  uint32_t pipeline) const {
  const VulkanApi& api = source.device->api;
  api.vkCmdBindPipeline(commands(), VK_PIPELINE_BIND_POINT_COMPUTE, source.pipelines->at(pipeline));
  api.vkCmdBindDescriptorSets(commands(), VK_PIPELINE_BIND_POINT_COMPUTE, source.layout, 0, 1,
                              &handles.set, 0, nullptr);
  api.vkCmdPushConstants(commands(), source.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, op.push_bytes,
                         &op.push);
}

// State of recording a list.
struct StepCommands::Recording {
  const Source& source;
  const StepList list;
  const uint32_t rows;
  const Op* const ops;
  const OpHandles* handles;  // by op index, minus the host ops so far
  const double piece_work;
  const VkCommandBufferUsageFlags usage;
  double open_work = 0;  // of the last piece
  uint32_t running = 0;  // the first op since the last barrier

  // True if op i must stage its input: the previous op has not staged the same one.
  const Op* maker(uint32_t i) const { return makerOf(ops, i, handles + i); }
  Op op(uint32_t i) const {
    const Op* const made_by = maker(i);
    return made_by != nullptr ? withMaker(ops[i], *made_by) : ops[i];
  }
  bool stages(uint32_t i) const {
    return handles[i].staging != kNoPipeline &&
           !(i > running && handles[i - 1].staging == handles[i].staging &&
             shareInput(ops[i], ops[i - 1]) && !mustWait(ops[i], ops[i - 1]));
  }
  bool waits(uint32_t i) const {
    const bool staging = stages(i);
    const Op later = op(i);
    for (uint32_t earlier = running; earlier < i; ++earlier) {
      if (handles[earlier].parts == 0) {
        continue;
      }
      // An op that was staged earlier may still read the staging piece.
      if (mustWait(later, op(earlier)) || (staging && handles[earlier].staging != kNoPipeline)) {
        return true;
      }
    }
    return false;
  }
};

Status StepCommands::recordList(const Source& source, StepList list, Range* range) {
  const Plan& plan = *source.plan;
  const uint32_t l = static_cast<uint32_t>(list);
  range->begin = range->end = count_;
  if (plan.n_ops[l] == 0) {
    return kOk;
  }
  // The step ahead is submitted before the previous token's step is known to have ended.
  const VkCommandBufferUsageFlags usage =
      list == StepList::kDecode ? VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT : 0;
  Recording recording = {source,
                         list,
                         plan.rows(list),
                         plan.ops[l],
                         source.handles + opsWithKernels(plan, l),
                         pieceWork(plan, list, source.device->caps),
                         usage};
  ORIEL_TRY(open(source, recording.usage));
  for (uint32_t i = 0; i < plan.n_ops[l]; ++i) {
    if (list == StepList::kChunk && i == plan.fill_ops && i != 0) {
      ORIEL_TRY(nextPiece(&recording));
      fill_ = {range->begin, count_ - 1};
    }
    ORIEL_TRY(isDoneByHost(recording.ops[i]) ? recordHostOp(&recording, i)
                                             : recordOp(&recording, i));
  }
  ORIEL_TRY(finishList(source));
  range->end = count_;
  return kOk;
}

// Records into a piece after all others.
Status StepCommands::recordTimed(const Source& source, StepList list, VkQueryPool times,
                                 VkCommandBuffer* commands) {
  const VulkanApi& api = source.device->api;
  const uint32_t l = static_cast<uint32_t>(list);
  const uint32_t pieces = count_;
  constexpr double kOnePiece = 1e300;
  Recording recording = {source,
                         list,
                         source.plan->rows(list),
                         source.plan->ops[l],
                         source.handles + opsWithKernels(*source.plan, l),
                         kOnePiece,
                         0};
  Status status = open(source);
  *commands = status.ok() ? this->commands() : VK_NULL_HANDLE;
  if (status.ok()) {
    api.vkCmdResetQueryPool(*commands, times, 0, source.plan->n_ops[l] + 1);
    api.vkCmdWriteTimestamp(*commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, times, 0);
  }
  for (uint32_t i = 0; status.ok() && i < source.plan->n_ops[l]; ++i) {
    recording.running = i;  // the barrier below is sufficient
    status = recordOp(&recording, i);
    api.vkCmdWriteTimestamp(*commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, times, i + 1);
    recordBarrier(api, *commands, kCompute, VK_ACCESS_SHADER_WRITE_BIT, kCompute, kShaderUse);
  }
  status = status.ok() ? close(source) : status;
  count_ = pieces;
  return status;
}

// The first ops of the head, for all tokens of a chunk: the same kernels and bindings.
Status StepCommands::recordNorms(const Source& source) {
  const Plan& plan = *source.plan;
  const uint32_t l = static_cast<uint32_t>(StepList::kHead);
  norms_ = {};
  const bool has_norm = plan.n_ops[l] != 0 && plan.ops[l][0].kind == OpKind::kRmsNorm;
  if (!has_norm) {  // a plan that only tests kernels
    return kOk;
  }
  norms_ = {count_, count_ + 1};
  Recording recording = {source,
                         StepList::kHead,
                         plan.chunk_tokens,
                         plan.ops[l],
                         source.handles + opsWithKernels(plan, l),
                         pieceWork(plan, StepList::kChunk, source.device->caps),
                         0};
  ORIEL_TRY(open(source));
  for (uint32_t i = 0; i < plan.norm_ops; ++i) {
    ORIEL_TRY(recordOp(&recording, i));
  }
  return finishList(source);
}

// Lets the next list and the host read the results of this list.
Status StepCommands::finishList(const Source& source) {
  recordBarrier(source.device->api, commands(), kCompute, VK_ACCESS_SHADER_WRITE_BIT,
                kCompute | VK_PIPELINE_STAGE_HOST_BIT, kShaderUse | VK_ACCESS_HOST_READ_BIT);
  return close(source);
}

Status StepCommands::nextPiece(Recording* recording) {
  recording->open_work = 0;
  ORIEL_TRY(close(recording->source));
  return open(recording->source, recording->usage);
}

// Lets commands after the op use all earlier results and the host's writes and uploads.
Status StepCommands::recordHostOp(Recording* recording, uint32_t index) {
  const VulkanApi& api = recording->source.device->api;
  recordBarrier(api, commands(), kCompute, VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                VK_ACCESS_HOST_READ_BIT);
  ORIEL_TRY(nextPiece(recording));
  last().host_op = index;
  recordBarrier(api, commands(), kCompute | kTransfer,
                VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, kCompute, kShaderUse);
  recording->running = index + 1;
  --recording->handles;
  return kOk;
}

Status StepCommands::recordOp(Recording* recording, uint32_t index) {
  const Source& source = recording->source;
  const Op& op = recording->ops[index];
  const OpHandles& handles = recording->handles[index];
  if (handles.parts == 0) {
    return kOk;
  }
  const Op* const maker = recording->maker(index);
  Kernel kernel;
  // The same choice as for its pipeline.
  (void)chooseKernel(op, maker, {recording->rows, isBatch(recording->list)}, source.device->caps,
                     *source.choices, source.log, &kernel);
  const OpWork work = opWork(op, recording->rows);
  const bool stages = recording->stages(index);
  bool waits = recording->waits(index);
  for (uint32_t part = 0; part < handles.parts; ++part) {
    const bool opens = recording->open_work >= recording->piece_work;
    if (opens) {
      ORIEL_TRY(nextPiece(recording));
    }
    if (waits) {
      recordBarrier(source.device->api, commands(), kCompute, VK_ACCESS_SHADER_WRITE_BIT, kCompute,
                    kShaderUse);
      recording->running = index;
      waits = false;
    }
    if (stages && part == 0) {
      recordStaging(recording, index, kernel.staging);
    }
    if (part == 0 || opens) {
      recordBindings(source, op, handles, handles.pipeline);
      if (maker != nullptr) {
        source.device->api.vkCmdPushConstants(commands(), source.layout,
                                              VK_SHADER_STAGE_COMPUTE_BIT, kMakerPushBytes,
                                              maker->push_bytes, &maker->push);
      }
    }
    recordDispatch(*recording, index, kernel, part);
    StepPiece& piece = last();
    piece.fixed += static_cast<float>(work.fixed / handles.parts);
    piece.per_seen[work.view] += static_cast<float>(work.per_seen / handles.parts);
    recording->open_work += work.most() / handles.parts;
  }
  return kOk;
}

void StepCommands::recordStaging(Recording* recording, uint32_t index, Staging staging) {
  const Source& source = recording->source;
  const VulkanApi& api = source.device->api;
  const Op& op = recording->ops[index];
  const OpHandles& handles = recording->handles[index];
  Kernel kernel;
  (void)chooseStaging(op, recording->rows, staging, source.device->caps, source.log, &kernel);
  recordBindings(source, op, handles, handles.staging);
  api.vkCmdDispatch(commands(), kernel.grid[0], kernel.grid[1], 1);
  recordBarrier(api, commands(), kCompute, VK_ACCESS_SHADER_WRITE_BIT, kCompute, kShaderUse);
  recording->running = index;
}

void StepCommands::recordDispatch(const Recording& recording, uint32_t index, const Kernel& kernel,
                                  uint32_t part) const {
  const Source& source = recording.source;
  const VulkanApi& api = source.device->api;
  const BufferRef& step = source.plan->device_step;
  const uint32_t parts = recording.handles[index].parts;
  uint32_t offset = 0;
  if (source.groups->covers(recording.list, recording.ops[index], recording.rows, kernel,
                            &offset)) {
    api.vkCmdDispatchIndirect(commands(), source.arenas->buffer(step.arena),
                              step.offset_bytes + offset);
  } else if (parts == 1) {
    api.vkCmdDispatch(commands(), kernel.grid[0], kernel.grid[1], kernel.grid[2]);
  } else {
    const uint32_t first = static_cast<uint32_t>(uint64_t{kernel.grid[1]} * part / parts);
    const uint32_t end = static_cast<uint32_t>(uint64_t{kernel.grid[1]} * (part + 1) / parts);
    api.vkCmdDispatchBase(commands(), 0, first, 0, kernel.grid[0], end - first, 1);
  }
}

}  // namespace oriel_internal
