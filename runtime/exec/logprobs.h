// The model's log-probabilities of tokens.
#pragma once

#include <cstdint>

#include "base/log.h"

namespace oriel_internal {

/// Log-probabilities of one choice: log-softmax of the model's unchanged logits. Fixed memory.
class Logprobs {
 public:
  static constexpr uint32_t kMostTop = 20;

  /// Computes them for the token `chosen` and the `n_top` most likely tokens. Ties go to the lower id. There are fewer
  /// if other tokens have no probability. NaN counts as minus infinity.
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
