// How likely the model itself found a token.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace oriel_internal {

/// Log-probabilities of one choice: of the softmax over all logits as the model gave them. Fixed memory.
class Logprobs {
 public:
  static constexpr uint32_t kMostTop = 20;

  /// Of the token `chosen`, and of the `n_top` most likely (the lower id first of equals; fewer where others have no
  /// probability). Not-a-number counts as minus infinity.
  void compute(const float* logits, uint32_t n_vocab, int32_t chosen, uint32_t n_top);
  float chosen() const { return chosen_; }
  const oriel_token_logprob* top() const { return top_; }
  uint32_t topCount() const { return n_top_; }
  void forget() { *this = Logprobs(); }

 private:
  void offer(int32_t id, float logit, uint32_t n_top);

  oriel_token_logprob top_[kMostTop] = {};
  uint32_t n_top_ = 0;
  float chosen_ = 0;
};

}  // namespace oriel_internal
