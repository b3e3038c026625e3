#include "exec/model_drafts.h"

#include <algorithm>

namespace oriel_internal {
namespace {

// If guesses do not pay, one is made per this number of tokens.
constexpr uint32_t kWait = 16;
// Assumed time of a guess before the first measurement, relative to a step.
constexpr double kAssumedTime = 0.1;

}  // namespace

uint32_t ModelDrafter::surenessOf(double share) {
  return share < 0.3 ? 0 : share < 0.5 ? 1 : share < 0.7 ? 2 : share < 0.9 ? 3 : 4;
}

uint32_t ModelDrafter::best(const DraftCost& cost, uint32_t most) const {
  const double each = cost.oneMs() == 0 ? 0
                      : guess_ms_ == 0  ? kAssumedTime
                                        : guess_ms_ / cost.oneMs();
  double shares[Drafter::kMost];
  std::fill_n(shares, most, any_.value());
  return cost.cheapest(shares, most, each);
}

bool ModelDrafter::pays(const DraftCost& cost, uint32_t most, DraftUse use) const {
  return most != 0 && (use == DraftUse::kAlways || waited_ + 1 >= kWait || best(cost, most) != 0);
}

uint32_t ModelDrafter::wanted(const DraftCost& cost, uint32_t most, DraftUse use) const {
  if (use == DraftUse::kAlways) {
    return most;
  }
  if (!cost.knowsOne()) {
    return 0;
  }
  const uint32_t count = best(cost, most);
  return count == 0 && waited_ >= kWait ? std::min(most, 1u) : count;
}

uint32_t ModelDrafter::made(const ModelGuess* guesses, uint32_t count, double ms, DraftCost* cost,
                            DraftUse use) {
  count_ = count;
  next_ = waited_ = 0;
  std::copy_n(guesses, count, guesses_);
  if (count == 0) {
    return 0;
  }
  guess_ms_ = movedTowards(guess_ms_, ms / count);
  if (use == DraftUse::kAlways) {
    return count;
  }
  double shares[Drafter::kMost];
  for (uint32_t i = 0; i < count; ++i) {
    shares[i] = right_[guesses[i].sureness].value();
  }
  return cost->best(shares, count);
}

void ModelDrafter::chosen(int32_t id) {
  ++waited_;
  if (next_ == count_) {
    return;
  }
  const ModelGuess& guess = guesses_[next_++];
  const bool right = guess.id == id;
  right_[guess.sureness].judged(right);
  any_.judged(right);
  count_ = right ? count_ : next_;  // later guesses were for other tokens
}

}  // namespace oriel_internal
