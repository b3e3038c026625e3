// The step block in memory: offsets of a token's views and rotations. shaders/shared/layout.h has the structs.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/arena.h"
#include "model/keys.h"
#include "model/model_desc.h"
#include "plan/op.h"
#include "shaders/shared/layout.h"

namespace oriel_internal {

/// Distance between tokens, in words.
constexpr uint32_t tokenWords(uint32_t n_views) { return kTokenStepWords + n_views * kViewWords; }

/// Offset in words of token `index`'s rotations in a block with room for `chunk` tokens.
constexpr uint64_t stepRotationWord(uint32_t chunk, uint32_t n_views, uint32_t rotation_words,
                                    uint32_t index) {
  return kStepHeaderWords + static_cast<uint64_t>(chunk) * tokenWords(n_views) +
         static_cast<uint64_t>(index) * rotation_words;
}

constexpr uint64_t stepBytes(uint32_t chunk, uint32_t n_views, uint32_t rotation_words) {
  return stepRotationWord(chunk, n_views, rotation_words, chunk) * 4;
}

/// A step block with a complete header.
class StepBlock {
 public:
  explicit StepBlock(void* block) : words_(static_cast<uint32_t*>(block)) {}
  explicit StepBlock(const void* block) : StepBlock(const_cast<void*>(block)) {}

  StepHeader& header() const { return *reinterpret_cast<StepHeader*>(words_); }
  TokenStep& token(uint32_t index) const { return *reinterpret_cast<TokenStep*>(tokenAt(index)); }
  View& view(uint32_t index, uint32_t view) const {
    return *reinterpret_cast<View*>(tokenAt(index) + kTokenStepWords + view * kViewWords);
  }
  /// A token's gate, addressed as in GatedNormPush and AddBiasPush.
  template <typename Push>
  float gate(uint32_t index, const Push& push) const {
    return *floats(push.gate_first + uint64_t{index} * push.gate_stride);
  }
  /// The values from this word of the block on.
  float* floats(uint64_t word) const { return reinterpret_cast<float*>(words_ + word); }

 private:
  uint32_t* tokenAt(uint32_t index) const {
    return words_ + kStepHeaderWords + static_cast<uint64_t>(index) * header().token_words;
  }

  uint32_t* words_;
};

/// AttentionPush::alibi_heads has the formula.
inline float alibiSlope(uint32_t m, uint32_t head) {
  const float power = head < m ? -8.0f * static_cast<float>(head + 1)
                               : -4.0f * static_cast<float>(2 * (head - m) + 1);
  return std::exp2(power / static_cast<float>(m));
}

/// Row of the slice for the embedding of token `t`. Rows before the slice wrap around.
inline uint32_t embeddedRow(const EmbedPush& p, const StepBlock& block, uint32_t t) {
  if (p.of_step == kEmbedRows) {
    return t;
  }
  const View& view = block.view(t, 0);
  const uint32_t row = p.of_step == kEmbedIds      ? block.token(t).token
                       : p.of_step == kEmbedSlots  ? view.slot
                       : p.of_step == kEmbedPlaces ? block.token(t).place
                                                   : view.n_sinks + view.count - 1;
  return row - p.first_row;
}

// A plan: every byte and every kernel dispatch of a model, decided before anything is allocated.
//
// Executors see only plans: no file, no model, no policy. All offsets are final. The ops of a step run in order, and
// each op sees all earlier writes.

/// A recorded sequence of ops.
///
///   kDecode     one token (n_tokens is 1); leaves its residual stream
///   kChunk      up to chunk_tokens tokens; leaves the residual stream of every token
///   kHead       logits and best tokens of the token that the step block names
///   kOutputs    the ops of kHead for up to output_rows tokens; best tokens of the last
///   kTail       one token of a chunk: continues after kChunk's first `fill_ops` ops with the other layers of kDecode
///   kBatch      up to batch_rows tokens, each from another session, or consecutive tokens of one session
///   kBatchHead  logits of all tokens of kBatch
///   kDraft      a guess, from one token and the vector after the last norm in row `tail` of the latest head; writes
///               the input vector of the next guess to row 0. With a prediction block: rows of ActivationLayout::hidden
///
/// kBatch and kBatchHead give the same bits as kDecode and kHead for each token. Both are empty in a plan for one
/// session without guesses. kDraft is empty without a draft model or a prediction block.
enum class StepList : uint8_t {
  kDecode,
  kChunk,
  kHead,
  kOutputs,
  kTail,
  kBatch,
  kBatchHead,
  kDraft
};
constexpr uint32_t kStepLists = 8;

/// Rows of one file tensor that go into a slice on the device. Uploads of a slice are in the order of its rows.
struct Upload {
  uint64_t tensor_offset = 0;  ///< file offset of the tensor's data
  uint32_t tensor_type = 0;    ///< as in the file
  uint32_t source_row = 0;     ///< first row of the tensor
  uint32_t rows = 0;           ///< 0: a vector of ones, from no tensor
  uint32_t cols = 0;
  WeightType type = WeightType::kF32;
  uint32_t file = 0;       ///< as in GgufTensor
  bool is_vector = false;  ///< plain float32 values, no groups of rows
  bool may_stay = false;   ///< from a tensor that may also stay in the file
  /// For a stack: columns of its matrices become rows, with type transposedType().
  bool transposed = false;
  BufferRef slice;
  uint32_t slice_row = 0;  ///< destination of the first row
  /// 0: no stack. Else the slice holds matrices of `rows` file rows each; the stride between matrices, in file rows.
  uint32_t stack_step = 0;
};

/// The weights that stay in the file.
struct OnFile {
  bool rows = false;  ///< the layers' own input embeddings; a token needs one row
  WeightType row_type = WeightType::kF32;  ///< type of that table; set by measureWeights()
  /// Expert slots per layer. Other experts are read when tokens choose them. 0: the device holds all experts.
  uint32_t expert_slots = 0;
  bool any() const { return rows || expert_slots != 0; }
};

/// A table that stays in the file. The host writes the rows of a step's tokens to `place`, in the order of the tokens,
/// packed like a slice of a matrix.
struct RowsOnFile {
  uint64_t tensor_offset = 0;  ///< file offset of its data
  uint32_t tensor_type = 0;    ///< as in the file
  WeightType type = WeightType::kF32;
  uint32_t cols = 0;
  uint32_t rows = 0;  ///< rows of the table
  BufferRef place;    ///< in kIo; zero bytes: no table stays in the file
};

/// The experts of one layer that stay in the file: the matrices of each expert, and slots for some of them.
struct ExpertsOnFile {
  struct Part {
    uint64_t tensor_offset = 0;  ///< file offset of the first expert's rows
    uint32_t tensor_type = 0;
    WeightType type = WeightType::kF32;
    uint32_t rows = 0;  ///< per expert
    uint32_t cols = 0;
    BufferRef slots;  ///< in kWeights: OnFile::expert_slots times slotBytes()
    uint64_t slotBytes() const;
    uint64_t fileBytes() const;  ///< per expert
  };
  Part parts[3];  ///< gate, up, down; a missing matrix has no rows
  uint32_t count = 0;
  uint32_t used = 0;  ///< by a token
};

struct Plan {
  // Choices.
  CacheShape cache;  ///< sinks, window, ring, heads
  CacheFormats formats;
  uint32_t chunk_tokens = 1;
  uint32_t output_rows = 1;  ///< logits per step; at most chunk_tokens
  uint32_t n_views = 1;      ///< views of every token
  uint32_t batch_rows = 1;  ///< tokens per step that are computed as if alone; at most chunk_tokens
  SessionWindows sessions;  ///< the sessions that share `cache`, if there are several
  uint32_t sessionCount() const { return cache.sessionCount(); }
  OnFile on_file;

  // Arenas.
  uint32_t weight_segments = 0;
  uint64_t* weight_segment_bytes = nullptr;
  uint64_t weights_bytes = 0;  ///< sum of the segments
  uint64_t cache_bytes = 0;    ///< sum of all segments; all but the last have kMaxAllocationBytes
  uint64_t activation_bytes = 0;
  uint64_t io_bytes = 0;

  // Pieces of kIo that the host touches.
  BufferRef step;  ///< host writes: the step block (plan/plan.h)
  /// host writes: the one-token part of a step block, for the token after the current one
  BufferRef step_ahead;
  BufferRef top;             ///< host reads: TopTokens, at TokenStep::place
  uint32_t draft_place = 0;  ///< index of kDraft's place in `top`
  RowsOnFile file_rows;      ///< host writes `place` before a step
  /// Host writes before a step: the rows of pictures among its tokens, part by part; row i belongs to token i. Zero bytes:
  /// the model takes no pictures.
  BufferRef picture_rows;
  /// For experts on file, between ops of a step: the host reads the routes (shaders/shared/layout.h) and writes the
  /// slots of the experts. Zero bytes: the device holds all experts, or the model has none.
  BufferRef routes;
  BufferRef slots;
  /// Host writes while loading, in alternate halves. The allocation also has room for a row of logits.
  BufferRef upload;
  /// In kActivations: [output_rows][n_vocab] floats of the latest head. The next step overwrites all rows except the
  /// first.
  BufferRef logits;
  /// In kActivations: [sessions][n_vocab] floats, the logits after each session's last token. Steps of other sessions
  /// do not change them. With one session: the first row of `logits`.
  BufferRef kept_logits;
  /// Copy of `step` in kActivations for kernels. Every submission begins with this copy.
  BufferRef device_step;
  /// In kWeights: the codebooks of plan/codebooks.h. Zero bytes: no weights need one.
  BufferRef codebooks;
  uint64_t step_decode_bytes = 0;  ///< bytes of `step` that a kDecode submission needs

  // Work.
  Op* ops[kStepLists] = {};
  uint32_t n_ops[kStepLists] = {};
  uint32_t op_capacity = 0;  ///< largest number of ops in any plan of this model, over all lists
  /// Index of the first op of list number `list` in an array of all ops; kStepLists: the number of all ops.
  uint32_t opsBefore(uint32_t list) const {
    uint32_t count = 0;
    for (uint32_t i = 0; i < list; ++i) {
      count += n_ops[i];
    }
    return count;
  }
  /// A picture's plan: every list but kOutputs has up to chunk_tokens rows.
  bool all_rows = false;
  /// Most tokens, or outputs, for the ops of a list.
  uint32_t rows(StepList list) const {
    if (all_rows && list != StepList::kOutputs) {
      return chunk_tokens;
    }
    switch (list) {
      case StepList::kChunk:
        return chunk_tokens;
      case StepList::kOutputs:
        return output_rows;
      case StepList::kBatch:
      case StepList::kBatchHead:
        return batch_rows;
      default:
        return 1;
    }
  }
  uint32_t norm_ops = 1;  ///< first ops of kHead: they compute the last norm
  /// Number of ops in kChunk that fill the memories. Tokens whose logits are not needed run only these.
  uint32_t fill_ops = 0;
  Upload* uploads = nullptr;
  uint32_t n_uploads = 0;
  ExpertsOnFile* expert_layers = nullptr;  ///< layers whose experts stay in the file
  uint32_t n_expert_layers = 0;

  // Facts for reports.
  uint64_t weights_read_bytes_per_token = 0;
  uint64_t on_file_bytes = 0;  ///< weights that stay in the file
};

/// Totals that depend only on the weights. The budgeter needs them before there is a plan.
struct PlanTotals {
  uint64_t weights_bytes = 0;
  uint32_t weight_segments = 0;
  uint32_t n_uploads = 0;
  uint32_t n_ops[kStepLists] = {};  ///< largest number of ops in any plan of this model
  uint32_t n_expert_layers = 0;     ///< as in Plan
  OnFile on_file;
  uint64_t on_file_bytes = 0;
  uint64_t upload_half_bytes = 0;  ///< half of the upload ring
  uint64_t weights_read_bytes_per_token = 0;
  uint64_t head_read_bytes = 0;  ///< part of these: the output matrix
  /// Part of weights_bytes: the bytes that a draft model's guess reads, or a prediction block's without the model's head.
  uint64_t draft_weights_bytes = 0;
  uint64_t adapter_bytes = 0;  ///< part of weights_bytes
  bool mapped =
      false;  ///< the weights are in a file that is mapped, and take no memory of their own
};
/// PlanTotals::upload_half_bytes for `weights_bytes` of weights.
uint64_t uploadHalfBytes(uint64_t weights_bytes, uint64_t largest_group_bytes);
Status measureWeights(const TensorIndex& tensors, const ModelDesc& model, const OnFile& wanted,
                      const Log& log, PlanTotals* totals);

/// Tokens per step that are computed as if alone.
uint32_t batchRows(const CacheShape& cache, uint32_t chunk);
/// Places for best tokens: one per session, or one per row of a batch.
uint32_t topPlaces(const CacheShape& cache, uint32_t chunk);

/// Builds the plan for these slots and this chunk in `arena`. When measuring, fills in only the byte counts and leaves
/// the lists null. `cache` is the longest session's; its SessionWindows are copied, so do not move a plan for several
/// sessions. Fails only if a number exceeds a limit (for example a row that no binding can hold), never for lack of
/// memory: the budgeter checks that.
Status buildPlan(const TensorIndex& tensors, const ModelDesc& model, const PlanTotals& totals,
                 const CacheShape& cache, const CacheFormats& formats, uint32_t chunk,
                 const Log& log, Arena* arena, Plan* plan);

}  // namespace oriel_internal
