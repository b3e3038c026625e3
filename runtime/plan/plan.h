// A plan: every byte and every kernel dispatch of a model, decided before anything is allocated.
//
// Executors see plans and nothing else: no file, no model, no policy. All offsets are final; the ops
// of one step run in order, each seeing everything the ones before it wrote.
#pragma once

#include <cstdint>

#include "base/arena.h"
#include "kv/cache_layout.h"
#include "model/model_desc.h"
#include "shaders/shared/layout.h"

namespace oriel {

/// Device memory, in the order in which it is allocated.
enum class ArenaKind : uint8_t {
  kWeights,      ///< device-local; one or more segments of at most kMaxAllocationBytes
  kCache,        ///< device-local; one segment
  kActivations,  ///< device-local
  kIo,           ///< host-visible: step parameters, best tokens, upload ring
};
constexpr uint32_t kArenaKinds = 4;

/// A piece of an arena: offset a multiple of kBufferAlignment, size at most kMaxBindingBytes.
struct BufferRef {
  ArenaKind arena = ArenaKind::kWeights;
  uint8_t segment = 0;
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
};

/// How weights are stored on the device; shaders/shared/layout.h has the packing.
enum class WeightType : uint8_t {
  kF32,
  kF16,
  kBf16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kIq4Nl,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIq4Xs,
};
constexpr uint32_t kWeightTypes = 15;
const char* weightTypeName(WeightType type);  ///< "f32", "q4_0", ...: as kernels are named

enum class OpKind : uint8_t {
  kEmbed,
  kRmsNorm,
  kMatmul,
  kAddBias,
  kRopeAppend,
  kAttention,
  kAttentionMerge,
  kGatedActivation,
  kTopBlocks,
  kTopTokens,
};

constexpr uint32_t kMaxOpBindings = 5;
/// Of a kMatmul op. The second is memory that nobody else uses meanwhile, for executors that change a product's
/// input into another form first: [tokens][units][kStagedUnitWords]. Models whose vectors have padding have none,
/// because what is left there must be finite as floats.
constexpr uint32_t kMatmulInput = 3;
constexpr uint32_t kMatmulStaged = 4;

/// One kernel dispatch. `push` is the kernel's push-constant block; `bindings` are in the order that
/// shaders/shared/layout.h gives for the kernel.
struct Op {
  OpKind kind = OpKind::kEmbed;
  WeightType weights = WeightType::kF32;  ///< kEmbed, kMatmul
  KvFormat k_format = KvFormat::kF16;     ///< kRopeAppend, kAttention
  KvFormat v_format = KvFormat::kF16;
  /// kMatmul, for measuring and tests: 1 + the candidate to use (Executor::matmulCandidate); 0: the executor
  /// chooses.
  uint8_t candidate = 0;
  uint8_t n_bindings = 0;
  BufferRef bindings[kMaxOpBindings];
  union Push {
    EmbedPush embed;
    RmsNormPush rms_norm;
    MatmulPush matmul;
    AddBiasPush add_bias;
    RopeAppendPush rope_append;
    AttentionPush attention;
    AttentionMergePush attention_merge;
    GatedActivationPush gated_activation;
    TopPush top;
  } push = {};
  uint32_t push_bytes = 0;
};

/// Rows of its input that a product (kMatmul) works on in a step of so many tokens.
inline uint32_t productRows(const Op& op, uint32_t tokens) {
  return op.push.matmul.one_row != 0 ? 1 : tokens;
}

/// A recorded sequence of ops. kDecode works on one token (n_tokens is 1), kChunk on up to
/// chunk_tokens; both leave the residual stream of every token. kHead turns the residual of token
/// head_row into logits and finds the best tokens.
enum class StepList : uint8_t { kDecode, kChunk, kHead };
constexpr uint32_t kStepLists = 3;

/// Rows of one file tensor that go into a slice on the device. Uploads of one slice follow each other
/// in the order of its rows.
struct Upload {
  uint64_t tensor_offset = 0;  ///< of the tensor's data, in the file
  uint32_t tensor_type = 0;    ///< as in the file
  uint32_t source_row = 0;     ///< first row of the tensor
  uint32_t rows = 0;
  uint32_t cols = 0;
  WeightType type = WeightType::kF32;
  bool is_vector = false;  ///< plain float32 values, no groups of rows
  BufferRef slice;
  uint32_t slice_row = 0;  ///< where the first row goes
};

struct Plan {
  // Choices.
  CacheShape cache;  ///< sinks, window, ring, heads
  CacheFormats formats;
  uint32_t chunk_tokens = 1;

  // Arenas.
  uint32_t weight_segments = 0;
  uint64_t* weight_segment_bytes = nullptr;
  uint64_t weights_bytes = 0;  ///< sum of the segments
  uint64_t cache_bytes = 0;
  uint64_t activation_bytes = 0;
  uint64_t io_bytes = 0;

  // Pieces of kIo that the host touches.
  BufferRef step;        ///< host writes: StepHeader, TokenStep[chunk], rotations
  BufferRef step_ahead;  ///< likewise, the part for one token: of the token after the one that runs
  BufferRef top;         ///< host reads: TopTokens
  /// Host writes while loading; two halves used in turn. What it lies in is as long as `logits`, too.
  BufferRef upload;
  /// In kActivations: n_vocab floats of the latest head.
  BufferRef logits;
  /// Copy of `step` in kActivations that kernels read; every submission begins with this copy.
  BufferRef device_step;
  uint64_t step_decode_bytes = 0;  ///< how much of `step` a kDecode submission needs

  // Work.
  Op* ops[kStepLists] = {};
  uint32_t n_ops[kStepLists] = {};
  uint32_t op_capacity = 0;  ///< most ops any plan of this model has, over all lists
  /// Where list number `list` begins in an array over all ops; kStepLists: how many there are.
  uint32_t opsBefore(uint32_t list) const {
    uint32_t count = 0;
    for (uint32_t i = 0; i < list; ++i) {
      count += n_ops[i];
    }
    return count;
  }
  Upload* uploads = nullptr;
  uint32_t n_uploads = 0;

  // Facts for reports.
  uint64_t weights_read_bytes_per_token = 0;
};

/// A token's tables in the step block, each of rope_dims words: its position, sink keys and, in models
/// that have such layers, its position in local layers.
constexpr uint32_t kSinkTable = 1;
constexpr uint32_t kLocalTable = 2;
constexpr uint32_t rotationWords(uint32_t rope_dims, bool local_layers) {
  return (local_layers ? 3 : 2) * rope_dims;
}

/// Offset in words of token `index`'s tables in the step block.
constexpr uint64_t stepRotationWord(uint32_t chunk, uint32_t rotation_words, uint32_t index) {
  return kStepHeaderWords + static_cast<uint64_t>(chunk) * kTokenStepWords +
         static_cast<uint64_t>(index) * rotation_words;
}

constexpr uint64_t stepBytes(uint32_t chunk, uint32_t rotation_words) {
  return stepRotationWord(chunk, rotation_words, chunk) * 4;
}

/// What the weights alone decide; the budgeter needs it before there is a plan.
struct PlanTotals {
  uint64_t weights_bytes = 0;
  uint32_t weight_segments = 0;
  uint32_t n_uploads = 0;
  uint32_t n_ops[kStepLists] = {};  ///< most ops any plan of this model has
  uint64_t upload_half_bytes = 0;   ///< half of the upload ring
  uint64_t weights_read_bytes_per_token = 0;
  uint64_t head_read_bytes = 0;  ///< of these, the output matrix
};
/// PlanTotals::upload_half_bytes of so many bytes of weights.
uint64_t uploadHalfBytes(uint64_t weights_bytes, uint64_t largest_group_bytes);
Status measureWeights(const GgufFile& file, const ModelDesc& model, const Log& log,
                      PlanTotals* totals);

/// Builds the plan for these slots and this chunk in `arena` (measuring: fills in the byte counts and
/// leaves the lists null). Fails only when a number exceeds a limit (a row that no binding can hold,
/// say), never for lack of memory: that is the budgeter's part.
Status buildPlan(const GgufFile& file, const ModelDesc& model, const PlanTotals& totals,
                 const CacheShape& cache, const CacheFormats& formats, uint32_t chunk,
                 const Log& log, Arena* arena, Plan* plan);

}  // namespace oriel
