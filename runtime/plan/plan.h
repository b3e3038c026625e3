// A plan: every byte and every kernel dispatch of a model, decided before anything is allocated.
//
// Executors see plans and nothing else: no file, no model, no policy. All offsets are final; the ops
// of one step run in order, each seeing everything the ones before it wrote.
#pragma once

#include <cstdint>

#include "base/arena.h"
#include "model/model_desc.h"
#include "model/tensor_index.h"
#include "plan/op.h"
#include "plan/step_block.h"

namespace oriel_internal {

/// A recorded sequence of ops. kDecode works on one token (n_tokens is 1), kChunk on up to chunk_tokens; both
/// leave the residual stream of every token. The others turn the residuals of the tokens that the step block
/// names into logits and find the best tokens of the last: kHead of one, kOutputs of up to output_rows. They are
/// the same ops. kTail takes one token of the chunk that kChunk's first `fill_ops` ops left on through the layers
/// behind them: what kDecode does there. kBatch takes up to batch_rows tokens, each of another session,
/// or all of one that follow each other, and kBatchHead makes logits of all of them: what kDecode and kHead do of each, to
/// the bit. Both are empty where a plan is for one session without guesses. kDraft makes a guess of one token and of the
/// vector behind the last norm in row `tail` of the latest head, and writes the vector that the next guess is made of to
/// row 0; empty where no model guesses.
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

/// Rows of one file tensor that go into a slice on the device. Uploads of one slice follow each other
/// in the order of its rows.
struct Upload {
  uint64_t tensor_offset = 0;  ///< of the tensor's data, in the file
  uint32_t tensor_type = 0;    ///< as in the file
  uint32_t source_row = 0;     ///< first row of the tensor
  uint32_t rows = 0;           ///< 0: a vector of ones, of no tensor
  uint32_t cols = 0;
  WeightType type = WeightType::kF32;
  uint32_t file = 0;       ///< as in GgufTensor
  bool is_vector = false;  ///< plain float32 values, no groups of rows
  bool may_stay = false;   ///< of a tensor that may also stay in the file
  /// Of a stack: the columns of its matrices become rows, of type transposedType().
  bool transposed = false;
  BufferRef slice;
  uint32_t slice_row = 0;  ///< where the first row goes
  /// 0: no stack. Else the slice is filled with matrices of `rows` rows of the file, each this many rows behind the one
  /// before.
  uint32_t stack_step = 0;
};

/// Which weights stay in the file.
struct OnFile {
  bool rows = false;  ///< the layers' own input embeddings, of which a token needs one row
  WeightType row_type = WeightType::kF32;  ///< of that table; measureWeights() fills it in
  /// Experts that each layer has room for; the others are read when tokens choose them. 0: all are held.
  uint32_t expert_slots = 0;
  bool any() const { return rows || expert_slots != 0; }
};

/// A table that stays in the file. The host puts the rows of a step's tokens where kernels read them, in the order of
/// the tokens, packed as a slice of a matrix is.
struct RowsOnFile {
  uint64_t tensor_offset = 0;  ///< of its data, in the file
  uint32_t tensor_type = 0;    ///< as in the file
  WeightType type = WeightType::kF32;
  uint32_t cols = 0;
  uint32_t rows = 0;  ///< of the table
  BufferRef place;    ///< in kIo; of no bytes: there is no such table
};

/// The experts of one layer, which stay in the file: matrices of each expert, and slots for some of them.
struct ExpertsOnFile {
  struct Part {
    uint64_t tensor_offset = 0;  ///< of the first expert's rows, in the file
    uint32_t tensor_type = 0;
    WeightType type = WeightType::kF32;
    uint32_t rows = 0;  ///< of an expert
    uint32_t cols = 0;
    BufferRef slots;  ///< in kWeights: OnFile::expert_slots times slotBytes()
    uint64_t slotBytes() const;
    uint64_t fileBytes() const;  ///< of an expert
  };
  Part parts[3];  ///< gate, up, down, or those of them that there are; the others have no rows
  uint32_t count = 0;
  uint32_t used = 0;  ///< by a token
};

struct Plan {
  // Choices.
  CacheShape cache;  ///< sinks, window, ring, heads
  CacheFormats formats;
  uint32_t chunk_tokens = 1;
  uint32_t output_rows = 1;  ///< of logits that a step can have at once; at most chunk_tokens
  uint32_t n_views = 1;      ///< of every token
  uint32_t batch_rows =
      1;  ///< tokens that a step can have each as if it were alone; at most chunk_tokens
  SessionWindows sessions;  ///< that `cache` is for, where there are several
  uint32_t sessionCount() const { return cache.sessionCount(); }
  OnFile on_file;

  // Arenas.
  uint32_t weight_segments = 0;
  uint64_t* weight_segment_bytes = nullptr;
  uint64_t weights_bytes = 0;  ///< sum of the segments
  uint64_t cache_bytes = 0;    ///< of all segments; all but the last have kMaxAllocationBytes
  uint64_t activation_bytes = 0;
  uint64_t io_bytes = 0;

  // Pieces of kIo that the host touches.
  BufferRef step;        ///< host writes: the step block (plan/step_block.h)
  BufferRef step_ahead;  ///< likewise, the part for one token: of the token after the one that runs
  BufferRef top;         ///< host reads: TopTokens, at TokenStep::place
  uint32_t draft_place = 0;  ///< of kDraft's there
  RowsOnFile file_rows;      ///< host writes the place before a step
  /// Of experts on file, between ops of a step: the host reads the routes (shaders/shared/layout.h) and writes where
  /// experts are. Of no bytes: experts are held, or there are none.
  BufferRef routes;
  BufferRef slots;
  /// Host writes while loading; two halves used in turn. What it lies in has room for a row of logits, too.
  BufferRef upload;
  /// In kActivations: [output_rows][n_vocab] floats of the latest head. Rows but the first are lost when the next
  /// step begins.
  BufferRef logits;
  /// In kActivations: [sessions][n_vocab] floats, those after each session's last token, which stay while others step.
  /// Where there is one session: the first row of `logits`.
  BufferRef kept_logits;
  /// Copy of `step` in kActivations that kernels read; every submission begins with this copy.
  BufferRef device_step;
  /// In kWeights: those of plan/codebooks.h. Of no bytes: no weights have one.
  BufferRef codebooks;
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
  /// Tokens, or outputs, that the ops of a list work on at most.
  uint32_t rows(StepList list) const {
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
  uint32_t norm_ops = 1;  ///< of kHead: the last norm, the first of them
  /// Ops of kChunk that fill the memories: tokens whose logits nobody wants need no more.
  uint32_t fill_ops = 0;
  Upload* uploads = nullptr;
  uint32_t n_uploads = 0;
  ExpertsOnFile* expert_layers = nullptr;  ///< those whose experts stay in the file
  uint32_t n_expert_layers = 0;

  // Facts for reports.
  uint64_t weights_read_bytes_per_token = 0;
  uint64_t on_file_bytes = 0;  ///< of weights that stay in the file
};

/// What the weights alone decide; the budgeter needs it before there is a plan.
struct PlanTotals {
  uint64_t weights_bytes = 0;
  uint32_t weight_segments = 0;
  uint32_t n_uploads = 0;
  uint32_t n_ops[kStepLists] = {};  ///< most ops any plan of this model has
  uint32_t n_expert_layers = 0;     ///< as in Plan
  OnFile on_file;
  uint64_t on_file_bytes = 0;
  uint64_t upload_half_bytes = 0;  ///< half of the upload ring
  uint64_t weights_read_bytes_per_token = 0;
  uint64_t head_read_bytes = 0;      ///< of these, the output matrix
  uint64_t draft_weights_bytes = 0;  ///< of a model that guesses: what a guess reads
  uint64_t adapter_bytes = 0;        ///< of weights_bytes
};
/// PlanTotals::upload_half_bytes of so many bytes of weights.
uint64_t uploadHalfBytes(uint64_t weights_bytes, uint64_t largest_group_bytes);
Status measureWeights(const TensorIndex& tensors, const ModelDesc& model, const OnFile& wanted,
                      const Log& log, PlanTotals* totals);

/// Tokens that a step can have each as if it were alone.
uint32_t batchRows(const CacheShape& cache, uint32_t chunk);
/// Places for best tokens: one for each session, or for each row of a batch.
uint32_t topPlaces(const CacheShape& cache, uint32_t chunk);

/// Builds the plan for these slots and this chunk in `arena` (measuring: fills in the byte counts and
/// leaves the lists null). `cache` is that of the longest session; its SessionWindows are copied, so a plan for several
/// sessions is not moved. Fails only when a number exceeds a limit (a row that no binding can hold,
/// say), never for lack of memory: that is the budgeter's part.
Status buildPlan(const TensorIndex& tensors, const ModelDesc& model, const PlanTotals& totals,
                 const CacheShape& cache, const CacheFormats& formats, uint32_t chunk,
                 const Log& log, Arena* arena, Plan* plan);

}  // namespace oriel_internal
