// The part of a session that verifies guesses of the next tokens: several rows of one step, each with the bits that the token
// has alone. So what is chosen is what would have been chosen without them, whatever is guessed: greedily, drawn with
// the same numbers, penalised or masked. A guess that is not chosen has only written slots that no token sees.
#include <algorithm>

#include "exec/session.h"

namespace oriel_internal {

DraftText Session::draftText(int32_t id) const {
  return DraftText(ids_, oriel_internal::heldTokens(cache_, at_.position, at_.stored, at_.carried.held_from),
                   id);
}

// Whether the step of this token is done: it was the next guess.
bool Session::takeGuess(int32_t id) {
  drafter_.chosen(draftText(id));
  model_drafter_.chosen(id);
  if (guesses_.taken == guesses_.count || guesses_.ids[guesses_.taken] != id) {
    guesses_ = {};
    return false;
  }
  drafter_.accepted();
  commit(&id, 1);
  logits_row_ = top_row_ = ++guesses_.taken;
  hidden_row_ = static_cast<int32_t>(logits_row_);
  has_top_ = true;
  at_.has_logits = 1;
  return true;
}

// The step of a token, and behind it those of the guesses.
Status Session::verify(int32_t id) {
  const uint32_t count = 1 + guesses_.count;
  int32_t ids[1 + Drafter::kMost] = {id};
  std::copy_n(guesses_.ids, guesses_.count, ids + 1);
  ORIEL_TRY(fillRows(ids, count));
  const bool had_logits = keepsLogits();
  at_.has_logits = false;
  fillStep(ids, count, {0, count});
  const StepBlock block(context_.executor->step());
  for (uint32_t row = 0; row < count; ++row) {
    block.token(row).place = row;
  }
  const Status status = submit(StepRun::kBatch, false);
  at_.unfinished = status.lost() ? id : -1;
  at_.has_logits = had_logits && endedInBody(status);
  ORIEL_TRY(status);
  drafter_.verified(guesses_.count);
  commit(&id, 1);
  at_.has_logits = true;
  logits_row_ = 0;
  return kOk;
}

// Behind a reply that ended with a guess: rows but the first are lost when the next step begins, even if that fails.
Status Session::settleLogits() {
  guesses_ = {};
  if (!at_.has_logits || logits_row_ == 0 || sharesDevice()) {
    return kOk;
  }
  const BufferRef& logits = context_.plan->logits;
  const uint64_t row_bytes = logits.size_bytes / context_.plan->output_rows;
  BufferRef from = logits.resized(row_bytes);
  from.offset_bytes += logits_row_ * row_bytes;
  const CopyPiece piece = {from, logits.resized(row_bytes)};
  ORIEL_TRY(context_.executor->copy(&piece, 1));
  logits_row_ = 0;
  return kOk;
}

}  // namespace oriel_internal
