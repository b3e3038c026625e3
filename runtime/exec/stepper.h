// One step of the executor at a time: fills its block, runs it, and knows which logits it left.
//
// It knows: step blocks, rows of logits, the token that a device has begun ahead, tables in the file.
// It must never know: where tokens come from, how one is chosen, messages.
#pragma once

#include "exec/model_drafts.h"
#include "exec/row_cache.h"
#include "exec/session_recall.h"

namespace oriel_internal {

/// Rows of a step whose outputs are wanted.
struct StepOutputs {
  uint32_t first = 0;
  uint32_t count = 0;
};

/// A batch whose logits are asked for, row by row.
struct EvaluatedBatch {
  const int32_t* ids;
  uint32_t n_tokens;
  StepOutputs outputs;      ///< rows that are there
  bool has_body = false;    ///< and the inputs of a head for others
  bool had_logits = false;  ///< of the token before
  uint64_t turn = 0;        ///< of the device, that left them there
};

/// A step is committed only after the executor said it succeeded; until then it has touched ring slots that no committed
/// query can see.
class Stepper {
 public:
  /// The sampler's room has the logits of one token until the next one is chosen.
  Stepper(const SessionContext& context, Conversation* at, RunningCall* call, SessionMemory* memory,
          SessionRecall* recall, Sampler* sampler, const RowCache& cache);

  /// Nothing that earlier steps left is of this conversation.
  void reset();
  /// All tokens were read again, or the executor is another one: only the best tokens of the last one are of use, if its
  /// logits are.
  void forgetHidden() {
    has_top_ = has_top_ && at_.has_logits != 0;
    hidden_row_ = -1;
  }
  RowCache row_cache;  ///< rows that stay in the file

  // Batches.

  /// Rows of ids in hand that stay in the file: what can fail does so before the first step.
  Status readAhead(const int32_t* ids, size_t count);
  /// Reads a batch. `last`: its last logits are wanted. `alone`: as one token that was chosen.
  Status read(const int32_t* ids, uint32_t count, bool last, bool alone);
  EvaluatedBatch begin(const int32_t* ids, uint32_t count) const {
    return {ids, count, {}, false, keepsLogits(), 0};
  }
  /// Logits of row i. The head runs over as many rows as the plan has room for.
  Status evaluate(EvaluatedBatch* batch, uint32_t i, const float** logits);
  /// Adds the last norm of these rows to `sums`, [n_embd].
  Status readNorms(const int32_t* ids, uint32_t count, StepOutputs outputs, float* sums);
  void commit(const int32_t* ids, uint32_t count, bool kept = true);
  /// A step of an encoder: the vectors or scores of these texts. `pooling`: kPoolMean and so on.
  Status readTexts(const int32_t* ids, const TextOfStep* texts, uint32_t count, uint32_t pooling,
                   float* values);

  // One token that was chosen.

  /// `more`: another token follows; `ahead`: it is the best one, so that a device may begin with it.
  Status decode(int32_t id, bool more, bool ahead);
  /// A token and guesses of the next ones, `count` in all.
  Status verify(const int32_t* ids, uint32_t count);
  /// The step of this token is done: it is guess number `row` of the latest verify(). False: that row is gone.
  bool take(int32_t id, uint32_t row);
  /// A model's guess of the token after `id`, from row `row` of the latest head.
  Status guess(int32_t id, uint32_t row, ModelGuess* guess);
  /// Row with the vector that the latest token's logits were made of, which is given away; -1: it is gone.
  int32_t takeHiddenRow();
  bool isAhead() const { return ahead_; }
  /// Nothing is on its way, and after a guess: rows but the first are lost when the next step begins, even if it fails.
  Status settle();

  // One step of several sessions.

  /// Row `row` of the block becomes this session's token. What can fail does so before anything changes.
  Status fillJoined(void* block, uint32_t row, int32_t id, bool ahead);
  Status endJoined(int32_t id, const Status& status, bool ahead);
  void fillHeader(void* step, uint32_t n_tokens, uint32_t n_outputs) const;

  // Logits of the last token.

  /// Its best tokens; null: they are not known.
  const TopTokens* top() const {
    return has_top_ ? context_.executor->top() + context_.index + top_row_ : nullptr;
  }
  /// A copy, where other sessions use the device.
  Status logits(const float** values) const;
  /// Valid as long as this session has the device.
  Status ownLogits(const float** values) const;
  uint32_t logitsRow() const { return logits_row_; }
  /// Before the arenas for steps are given back, logits go where the next token would be chosen; and back.
  Status leaveDevice();
  Status enterDevice();

 private:
  void fillStep(const int32_t* ids, uint32_t count, StepOutputs outputs);
  void fillBlock(void* step, uint64_t position, const int32_t* ids, uint32_t count,
                 StepOutputs outputs) const;
  void fillGuess(int32_t id, uint32_t row) const;
  Status fillRows(const int32_t* ids, uint32_t count);
  Status submit(StepRun what, bool may_stop);
  Status step(const int32_t* ids, uint32_t count, StepOutputs outputs, StepRun what);
  Status lastBatch(const int32_t* ids, uint32_t count);
  StepRun fillRun() const { return context_.stops_early ? StepRun::kFill : StepRun::kChunk; }
  Status addNorms(uint32_t rows, float* sums);
  /// visit(row, n, values) for rows of `stride` words at `place`, as many at a time as can be read.
  template <typename Visit>
  Status readRows(const BufferRef& place, uint32_t rows, uint32_t stride, const Visit& visit);
  const float* copyOf(const float* logits) const;
  /// A step that ends in its body leaves the logits in the first row alone.
  bool keepsLogits() const {
    return at_.has_logits != 0 && (context_.sharesDevice() || logits_row_ == 0);
  }
  void setLogits(bool has) { at_.has_logits = has ? 1 : 0; }

  const SessionContext& context_;
  Conversation& at_;
  RunningCall& call_;
  SessionMemory& memory_;
  SessionRecall& recall_;
  Sampler& sampler_;
  // Of the last token:
  uint32_t logits_row_ = 0;     ///< row of the latest head with its logits
  uint32_t top_row_ = 0;        ///< and with its best tokens,
  bool has_top_ = false;        ///< if they are there
  int32_t hidden_row_ = -1;     ///< row with the vector that its logits were made of; -1: gone
  uint32_t verified_rows_ = 0;  ///< of the latest step, if that was verify()
  bool ahead_ = false;  ///< the executor has begun with the token that it found to be the best
};

}  // namespace oriel_internal
