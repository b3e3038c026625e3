// Helpers for recording command buffers.
#pragma once

#include "plan/plan.h"
#include "vulkan/device.h"
#include "vulkan/kernels.h"
#include "vulkan/memory.h"
#include "vulkan/pipelines.h"

namespace oriel_internal {

constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
constexpr VkPipelineStageFlags kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkPipelineStageFlags kIndirect = VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
constexpr VkAccessFlags kShaderUse = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;

/// Makes writes (`written`) of the stages `from` visible to accesses (`used`) of the stages `to`.
void recordBarrier(const VulkanApi& api, VkCommandBuffer commands, VkPipelineStageFlags from,
                   VkAccessFlags written, VkPipelineStageFlags to, VkAccessFlags used);
Status beginCommands(const VulkanDevice& device, VkCommandBuffer commands,
                     VkCommandBufferUsageFlags flags, const Log& log);
Status endCommands(const VulkanDevice& device, VkCommandBuffer commands, const Log& log);

// Dependencies between the ops of a list.

/// True if `later` must not run concurrently with `earlier`: one writes a piece that the other reads or writes.
bool mustWait(const Op& later, const Op& earlier);

/// True if two products have the same input and the same staging piece.
bool shareInput(const Op& a, const Op& b);

// The commands of a step, recorded once in pieces. A submission holds as many pieces as the device can do in a short
// time.

/// True for an op that the host does between two pieces of a step. It has no kernel.
inline bool isDoneByHost(const Op& op) { return op.kind == OpKind::kFetchExperts; }
/// Number of host ops in all lists.
uint32_t hostOps(const Plan& plan);

/// State of an op with a kernel, in ExecutorMemory.per_op: by list, then in order.
struct OpHandles {
  VkDescriptorSet set;
  uint16_t pipeline;
  uint16_t staging;  ///< staging pipeline that runs first; kNoPipeline: none
  uint32_t parts;    ///< dispatches that the op's grid is divided into; 0: its readers do its work
  VkBufferView texels[kMaxTexelViews];
};
constexpr uint16_t kNoPipeline = UINT16_MAX;
static_assert(sizeof(OpHandles) <= kExecutorBytesPerOp, "handles per op");

/// The op whose work product ops[index] does; null: none. `handles`: of the op; earlier ones belong to earlier ops.
const Op* makerOf(const Op* ops, uint32_t index, const OpHandles* handles);

/// Target work of a piece of the list (plan/op.h).
double pieceWork(const Plan& plan, StepList list, const DeviceCaps& caps);
/// Number of dispatches of an op for pieces of `piece_work`.
uint32_t partsOf(const Op& op, uint32_t rows, const Kernel& kernel, double piece_work);

/// Commands that are submitted in sequence. They contain the barriers for their dependencies on
/// earlier commands.
struct StepPiece {
  VkCommandBuffer commands = VK_NULL_HANDLE;
  float fixed = 0;                 ///< work, as in OpWork
  float per_seen[kMaxViews] = {};  ///< by view
  /// Index of a host op that runs before this piece, after all earlier pieces; kNoOp: none.
  uint32_t host_op = kNoOp;
  static constexpr uint32_t kNoOp = UINT32_MAX;
};
/// A piece that begins with a host op uses the memory of that op, which has no handles.
static_assert(sizeof(StepPiece) <= kExecutorBytesPerOp, "pieces behind the handles");

/// Share of the recorded work that a run has to do.
struct StepLoad {
  double share = 0;             ///< share of the body's token capacity
  double head_share = 0;        ///< share of the head's output capacity
  double seen[kMaxViews] = {};  ///< tokens that the last token sees, by view

  double of(const StepPiece& piece, bool of_body) const {
    double work = double{piece.fixed};
    for (uint32_t view = 0; view < kMaxViews; ++view) {
      work += double{piece.per_seen[view]} * seen[view];
    }
    return work * (of_body ? share : head_share);
  }
};

class StepCommands {
 public:
  struct Source {
    const Plan* plan;
    const VulkanDevice* device;
    const DeviceArenas* arenas;
    const Pipelines* pipelines;
    const MatmulChoices* choices;
    const AttentionGroups* groups;
    VkPipelineLayout layout;
    VkCommandPool pool;  ///< owns the commands of the pieces
    const OpHandles* handles;
    StepPiece* more_pieces;  ///< one per host op
    uint32_t n_more_pieces;
    Log log;
  };
  /// May be called again after pipelines changed, with no step in flight.
  Status record(const Source& source);

  /// Commands that run the list's ops in sequence, without overlap, and write timestamps before the first and after each
  /// op to `times`. Valid until the next call of this or record().
  Status recordTimed(const Source& source, StepList list, VkQueryPool times,
                     VkCommandBuffer* commands);

  struct Range {
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  /// A run is a copy of the step block, then its body, then its head. `many`: more than one output.
  VkCommandBuffer copy(StepRun what, bool many) const {
    const bool whole =
        many || what == StepRun::kBatch || (hasBody(what) && bodyOf(what) == StepList::kChunk);
    return piece(whole ? copy_chunk_ : copy_decode_).commands;
  }
  /// Copies step (0) or step_ahead (1), and replaces its token with the best token of the preceding head.
  VkCommandBuffer copyAhead(uint32_t block) const { return piece(copy_ahead_[block]).commands; }
  Range body(StepRun what) const;
  Range head(StepRun what, bool many) const {
    return what == StepRun::kChunkNorms ? norms_
           : what == StepRun::kBatch    ? batch_head_
           : !hasHead(what)             ? Range()
           : many                       ? outputs_
                                        : head_;
  }
  const StepPiece& piece(uint32_t index) const {
    return index < kMaxPieces ? pieces_[index] : more_pieces_[index - kMaxPieces];
  }
  /// Reads the load from the step block.
  static StepLoad load(const Plan& plan, StepRun what, const void* step);

  /// Upper limit for all lists, not counting pieces that begin with a host op.
  static constexpr uint32_t kMaxPieces = 205;

 private:
  struct Recording;
  Status recordList(const Source& source, StepList list, Range* range);
  Status finishList(const Source& source);
  Status recordNorms(const Source& source);
  Status recordOp(Recording* recording, uint32_t index);
  Status recordHostOp(Recording* recording, uint32_t index);
  Status nextPiece(Recording* recording);
  void recordStaging(Recording* recording, uint32_t index, Staging staging);
  void recordBindings(const Source& source, const Op& op, const OpHandles& handles,
                      uint32_t pipeline) const;
  void recordDispatch(const Recording& recording, uint32_t index, const Kernel& kernel,
                      uint32_t part) const;
  Status recordStepCopy(const Source& source, const BufferRef& step, uint64_t bytes, bool of_best,
                        uint32_t* index);
  Status open(const Source& source, VkCommandBufferUsageFlags usage = 0);
  Status close(const Source& source);
  StepPiece& last() {
    return count_ <= kMaxPieces ? pieces_[count_ - 1] : more_pieces_[count_ - 1 - kMaxPieces];
  }
  VkCommandBuffer commands() const { return piece(count_ - 1).commands; }

  StepPiece pieces_[kMaxPieces] = {};
  StepPiece* more_pieces_ = nullptr;
  uint32_t count_ = 0;
  Range decode_;
  Range chunk_;
  Range fill_;  // the first pieces of a chunk
  Range tail_;
  Range head_;
  Range outputs_;
  Range batch_;
  Range batch_head_;
  Range draft_;
  Range norms_;
  uint32_t copy_chunk_ = 0;
  uint32_t copy_decode_ = 0;
  uint32_t copy_ahead_[2] = {};
};

// Descriptor sets of a plan's kernels: one layout for all kernels and one set per op, written
// once for the present arenas.

class Bindings {
 public:
  Status createLayouts(const VulkanDevice& device, const Log& log);
  VkPipelineLayout layout() const { return pipeline_layout_; }
  /// Makes the sets and texel views of all ops with kernels, list after list, and stores them in `handles`. After
  /// a failure `handles` hold the objects that were made.
  Status createSets(const VulkanDevice& device, const DeviceArenas& arenas, const Plan& plan,
                    const Log& log, OpHandles* handles);
  /// Before their arenas are freed; createSets() makes new ones. Having none is not an error.
  void releaseSets(const VulkanDevice& device);
  void release(const VulkanDevice& device);

 private:
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout pipeline_layout_ = VK_NULL_HANDLE;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
};

}  // namespace oriel_internal
