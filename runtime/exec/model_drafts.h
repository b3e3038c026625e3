// The benefit of a model's guesses of the next tokens: their share of right ones by sureness, and their cost.
#pragma once

#include "exec/drafts.h"

namespace oriel_internal {

/// A guess, and how sure the model is of it.
struct ModelGuess {
  int32_t id = -1;
  uint32_t sureness = 0;  ///< a class, as ModelDrafter::surenessOf() says
};

/// Fixed memory; nothing here runs anything.
class ModelDrafter {
 public:
  static constexpr uint32_t kClasses = 5;

  /// The class of a guess whose part of the best tokens' probability is `share`.
  static uint32_t surenessOf(double share);

  void forget() { *this = ModelDrafter(); }
  /// Number of guesses to make, up to `most`. If none pay, one is made now and then to measure the benefit.
  uint32_t wanted(const DraftCost& cost, uint32_t most, DraftUse use) const;
  /// Whether guessing one token further is expected to pay.
  bool pays(const DraftCost& cost, uint32_t most, DraftUse use) const;
  /// Records guesses and their time. Returns how many of them, from the first on, are worth verifying.
  uint32_t made(const ModelGuess* guesses, uint32_t count, double ms, DraftCost* cost,
                DraftUse use);
  /// A token was chosen: the guess of it, if there is one, was right or not.
  void chosen(int32_t id);

 private:
  uint32_t best(const DraftCost& cost, uint32_t most) const;

  GuessShare right_[kClasses] = {0.3, 0.45, 0.6, 0.75, 0.9};
  GuessShare any_ = {0.8, 64};  ///< of all guesses: some have to be made to find out
  double guess_ms_ = 0;         ///< of one guess, near the median; 0: not known
  uint32_t waited_ = 0;         ///< tokens since the last guess
  ModelGuess guesses_[Drafter::kMost];
  uint32_t count_ = 0;
  uint32_t next_ = 0;  ///< the guess of the next token
};

}  // namespace oriel_internal
