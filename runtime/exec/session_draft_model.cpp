// The part of a session that has a model guess the next tokens: one submission a guess, which reads the session's own keys
// and values and writes nothing that a token could see.
#include <algorithm>
#include <cmath>

#include "exec/session.h"
#include "os/os.h"

namespace oriel_internal {
namespace {

// Of what the best few tokens have.
double shareOfBest(const TopTokens& top) {
  constexpr uint32_t kFew = 10;
  double sum = 0;
  for (uint32_t i = 0; i < std::min(top.count, kFew); ++i) {
    sum += std::exp(static_cast<double>(top.best[i].logit) - top.best[0].logit);
  }
  return sum > 0 ? 1 / sum : 0;
}

}  // namespace

// All guesses are made at the place of the token that was chosen, whose key and value are not there yet: what it would see
// of itself is left out.
void Session::fillGuess(int32_t id, uint32_t row) const {
  void* const step = context_.executor->step();
  fillHeader(step, 1, 1);
  fillToken(step, 0, at_.position, at_.position, id, 0);
  const StepBlock block(step);
  block.header().tail = row;
  block.token(0).place = context_.plan->draft_place;
  for (uint32_t view = 0; view < context_.model->n_views; ++view) {
    View& seen = block.view(0, view);
    uint32_t& own = seen.count != 0 ? seen.count : seen.n_sinks;
    own -= own != 0 ? 1 : 0;
  }
}

Status Session::guess(int32_t id, uint32_t row, ModelGuess* guess) {
  fillGuess(id, row);
  ORIEL_TRY(context_.executor->run(StepRun::kDraft));
  const TopTokens& top = context_.executor->top()[context_.plan->draft_place];
  if (top.count == 0) {
    return kOk;  // no number among its logits
  }
  *guess = {static_cast<int32_t>(top.best[0].id), ModelDrafter::surenessOf(shareOfBest(top))};
  return kOk;
}

bool Session::hasDraftModel() const { return context_.model->draft.n_layers != 0; }

// Guesses for the tokens behind `id`, which was chosen, up to `room`; their number. What begins with row `hidden_row_` of
// the latest head goes on with the vectors that guesses leave.
Status Session::guessByModel(int32_t id, uint32_t room, Guesses* guesses) {
  guesses->count = 0;
  if (!hasDraftModel() || hidden_row_ < 0 || ahead_ || at_.position == 0) {
    return kOk;
  }
  const uint32_t wanted = model_drafter_.wanted(drafter_.cost(), room, drafter_.use());
  if (wanted == 0) {
    return kOk;
  }
  const double begin_ms = nowMs();
  WipedArray<ModelGuess, Drafter::kMost> made;
  uint32_t count = 0;
  uint32_t row = static_cast<uint32_t>(hidden_row_);
  hidden_row_ = -1;
  at_.has_logits = at_.has_logits && logits_row_ == 0;  // those behind the first lie where a guess's do
  for (; count < wanted; ++count, row = 0) {
    const Status status = guess(count == 0 ? id : made[count - 1].id, row, &made[count]);
    if (status.lost()) {
      at_.unfinished = id;
      return status;
    }
    if (!status.ok() || made[count].id < 0) {
      break;  // the token goes on without
    }
  }
  guesses->count =
      model_drafter_.made(made, count, nowMs() - begin_ms, &drafter_.cost(), drafter_.use());
  for (uint32_t i = 0; i < guesses->count; ++i) {
    guesses->ids[i] = made[i].id;
  }
  return kOk;
}

}  // namespace oriel_internal
