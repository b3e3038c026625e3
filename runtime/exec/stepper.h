// Runs one step of the executor at a time: fills its block, runs it, and tracks the available logits.
//
// It knows: step blocks, rows of logits, the token that a device has begun ahead, tables in the file.
// It must never know: the source of tokens, how a token is chosen, messages.
#pragma once

#include "exec/drafts.h"
#include "exec/expert_cache.h"
#include "exec/recall_file.h"

namespace oriel_internal {

/// Rows of a step whose outputs are needed.
struct StepOutputs {
  uint32_t first = 0;
  uint32_t count = 0;
};

/// A batch whose logits are requested row by row.
struct EvaluatedBatch {
  const int32_t* ids;
  uint32_t n_tokens;
  StepOutputs outputs;      ///< available rows
  bool has_body = false;    ///< the inputs of a head for other rows are also available
  bool had_logits = false;  ///< the logits of the previous token were available
  uint64_t turn = 0;        ///< turn of the device that computed these rows
};

/// Commits a step only after the executor reported success. Until then the step has written only ring slots that no
/// committed query can see.
class Stepper {
 public:
  /// The sampler's room holds the logits of one token until the next token is chosen.
  Stepper(const SessionContext& context, Conversation* at, RunningCall* call, SessionMemory* memory,
          SessionRecall* recall, Sampler* sampler, const RowCache& cache);

  /// Discards everything from earlier steps.
  void reset();
  /// Call after all tokens were read again or the executor was replaced. Keeps only the best tokens of the last token,
  /// if its logits are available.
  void forgetHidden() {
    has_top_ = has_top_ && at_.has_logits != 0;
    hidden_row_ = -1;
    fed_ = {};
    alignFed();
  }
  RowCache row_cache;  ///< rows that stay in the file

  // Batches.

  /// Reads the rows of ids that stay in the file. Errors come here, before the first step.
  Status readAhead(const int32_t* ids, size_t count);
  /// Reads a batch. `last`: its last logits are needed. `alone`: runs it as one chosen token.
  Status read(const int32_t* ids, uint32_t count, bool last, bool alone);
  EvaluatedBatch begin(const int32_t* ids, uint32_t count) const {
    return {ids, count, {}, false, keepsLogits(), 0};
  }
  /// Returns the logits of row i. Runs the head on as many rows as the plan has room for.
  Status evaluate(EvaluatedBatch* batch, uint32_t i, const float** logits);
  /// Adds the vectors after the last norm of these rows to `sums`, [n_embd].
  Status readNorms(const int32_t* ids, uint32_t count, StepOutputs outputs, float* sums);
  void commit(const int32_t* ids, uint32_t count, bool kept = true);
  /// Runs a step of an encoder and returns the vectors or scores of these texts. `pooling`: kPoolMean and so on.
  Status readTexts(const int32_t* ids, const TextOfStep* texts, uint32_t count, uint32_t pooling,
                   float* values);

  // One chosen token.

  /// `ahead`: another token follows, which is the best one. `begins`: the device may begin it.
  Status decode(int32_t id, bool ahead, bool begins);
  /// Runs a token and guesses of the next ones, `count` in all. `ahead`: as in decode().
  Status verify(const int32_t* ids, uint32_t count, bool ahead);
  /// Commits this token, which is guess number `row` of the latest verify(). False: that row is lost.
  bool take(int32_t id, uint32_t row, bool ahead);
  /// Runs the draft model or the prediction block: guess number `index` in a row, of the token after `id`. `row`: from
  /// takeHiddenRow(); later guesses read the vector of the guess before.
  Status guess(int32_t id, uint32_t index, uint32_t row, ModelGuess* guess);
  /// Returns the row with the vector for the latest token's logits; -1: none. A draft model reads it only once.
  int32_t takeHiddenRow();
  bool isAhead() const { return ahead_; }
  /// Waits for pending work. Also call it after a guess: the next step overwrites all rows except the first, even if it
  /// fails.
  Status settle();

  // One step for several sessions.

  /// Fills row `row` of the block with this session's token. Errors come before any change.
  Status fillJoined(void* block, uint32_t row, int32_t id, bool ahead);
  Status endJoined(int32_t id, const Status& status, bool ahead);
  void fillHeader(void* step, uint32_t n_tokens, uint32_t n_outputs) const;

  // Logits of the last token.

  /// The best tokens; null: unknown.
  const TopTokens* top() const {
    return has_top_ ? context_.executor->top() + context_.index + top_row_ : nullptr;
  }
  /// Returns a copy if other sessions use the device.
  Status logits(const float** values) const;
  /// Valid while this session holds the device.
  Status ownLogits(const float** values) const;
  uint32_t logitsRow() const { return logits_row_; }
  /// Moves the logits to the sampler's room before the arenas for steps are freed, and back.
  Status leaveDevice();
  Status enterDevice();

 private:
  void fillStep(const int32_t* ids, uint32_t count, StepOutputs outputs, uint32_t states = 1);
  void fillBlock(void* step, uint64_t position, const int32_t* ids, uint32_t count,
                 StepOutputs outputs) const;
  void fillGuess(int32_t id, uint32_t index, uint32_t row) const;
  void hideUnfed(uint32_t index) const;
  bool predicts() const { return context_.model->predicts; }
  void alignFed();
  Status fillRows(const int32_t* ids, uint32_t count);
  void fillPictures(const int32_t* ids, uint32_t count) const;
  Status submit(StepRun what, bool may_stop);
  Status step(const int32_t* ids, uint32_t count, StepOutputs outputs, StepRun what);
  Status lastBatch(const int32_t* ids, uint32_t count);
  StepRun fillRun() const { return context_.stops_early ? StepRun::kFill : StepRun::kChunk; }
  Status addNorms(uint32_t rows, float* sums);
  /// Calls visit(row, n, values) for rows of `stride` words at `place`, as many rows at a time as one read allows.
  template <typename Visit>
  Status readRows(const BufferRef& place, uint32_t rows, uint32_t stride, const Visit& visit);
  const float* copyOf(const float* logits) const;
  /// True if a step that ends in its body keeps the logits: they must be in the first row.
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
  // Rows of the last token:
  uint32_t logits_row_ = 0;     ///< row of the latest head with its logits
  uint32_t top_row_ = 0;        ///< row with its best tokens
  bool has_top_ = false;        ///< its best tokens are available
  int32_t hidden_row_ = -1;     ///< row with the vector for its logits; -1: lost
  uint32_t verified_rows_ = 0;  ///< rows of the latest step, if that was verify()
  bool ahead_ = false;          ///< the executor has begun a step with its best token

  /// What a prediction block has read (ModelDesc::predicts).
  struct Fed {
    static constexpr uint32_t kNoRow = UINT32_MAX;

    uint64_t from = 0;  ///< it has keys of tokens [from, to)
    uint64_t to = 0;
    uint32_t row = kNoRow;  ///< of HiddenRows: the vector of the latest token; kNoRow: lost
  };
  Fed fed_;
};

}  // namespace oriel_internal
