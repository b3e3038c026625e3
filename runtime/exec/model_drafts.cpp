#include "exec/model_drafts.h"

#include <algorithm>

namespace oriel {
namespace {

// As in drafts.cpp.
constexpr uint32_t kAssumed = 3;
constexpr uint32_t kRemembered = 16;
constexpr uint32_t kRememberedAny = 64;
constexpr double kTimeStep = 1.04;
constexpr double kWorthIt = 1.08;
// Where guesses do not pay one is made of every so many tokens.
constexpr uint32_t kWait = 16;
// Of a step's time, until one was measured.
constexpr double kAssumedTime = 0.1;

void judge(bool right, uint32_t remembered, uint32_t* judged, double* share) {
  *judged = std::min(*judged + 1, remembered - kAssumed);
  *share += ((right ? 1.0 : 0.0) - *share) / (kAssumed + *judged);
}

}  // namespace

uint32_t ModelDrafter::surenessOf(double share) {
  return share < 0.3 ? 0 : share < 0.5 ? 1 : share < 0.7 ? 2 : share < 0.9 ? 3 : 4;
}

// As DraftCost::best(), but that each guess costs something before it is verified.
uint32_t ModelDrafter::best(const DraftCost& cost, uint32_t most) const {
  const double each = cost.oneMs() == 0 ? 0
                      : guess_ms_ == 0  ? kAssumedTime
                                        : guess_ms_ / cost.oneMs();
  uint32_t taken = 0;
  double least = 1 / kWorthIt;
  double tokens = 1;
  double chance = 1;
  for (uint32_t guesses = 1; guesses <= most; ++guesses) {
    chance *= any_;
    tokens += chance;
    const double time = (cost.timeOf(1 + guesses) + guesses * each) / tokens;
    if (time < least) {
      least = time;
      taken = guesses;
    }
  }
  return taken;
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
  const double each = ms / count;
  guess_ms_ = guess_ms_ == 0     ? each
              : each > guess_ms_ ? guess_ms_ * kTimeStep
                                 : guess_ms_ / kTimeStep;
  if (use == DraftUse::kAlways) {
    return count;
  }
  double shares[Drafter::kMost];
  for (uint32_t i = 0; i < count; ++i) {
    shares[i] = right_[guesses[i].sureness];
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
  judge(right, kRemembered, &judged_[guess.sureness], &right_[guess.sureness]);
  judge(right, kRememberedAny, &judged_any_, &any_);
  count_ = right ? count_ : next_;  // those behind were guessed for other tokens
}

}  // namespace oriel
