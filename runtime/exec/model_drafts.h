// The benefit of a draft model's guesses: their share of right ones by sureness, and their cost.
#pragma once

#include "exec/drafts.h"

namespace oriel_internal {

/// A guess and its sureness.
struct ModelGuess {
  int32_t id = -1;
  uint32_t sureness = 0;  ///< a class, from ModelDrafter::surenessOf()
};

/// Fixed memory. Runs no model.
class ModelDrafter {
 public:
  static constexpr uint32_t kClasses = 5;

  /// The class of a guess with the fraction `share` of the best tokens' probability.
  static uint32_t surenessOf(double share);

  void forget() { *this = ModelDrafter(); }
  /// Number of guesses to make, up to `most`. If guesses do not pay, makes one now and then to measure the benefit.
  uint32_t wanted(const DraftCost& cost, uint32_t most, DraftUse use) const;
  /// True if one more guess is expected to pay.
  bool pays(const DraftCost& cost, uint32_t most, DraftUse use) const;
  /// Records guesses and their time. Returns the number of guesses to verify, counted from the first.
  uint32_t made(const ModelGuess* guesses, uint32_t count, double ms, DraftCost* cost,
                DraftUse use);
  /// Records a chosen token: the guess of it, if any, was right or wrong.
  void chosen(int32_t id);

 private:
  uint32_t best(const DraftCost& cost, uint32_t most) const;

  GuessShare right_[kClasses] = {0.3, 0.45, 0.6, 0.75, 0.9};
  GuessShare any_ = {0.8, 64};  ///< all guesses: some are made only to measure
  double guess_ms_ = 0;         ///< one guess, near the median; 0: unknown
  uint32_t waited_ = 0;         ///< tokens since the last guess
  ModelGuess guesses_[Drafter::kMost];
  uint32_t count_ = 0;
  uint32_t next_ = 0;  ///< the guess of the next token
};

}  // namespace oriel_internal
