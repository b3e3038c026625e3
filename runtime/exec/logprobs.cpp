#include "exec/sampler.h"

#include <algorithm>
#include <cmath>

namespace oriel_internal {
namespace {

// Also if both are infinite.
double difference(float logit, float most) {
  return logit == most ? 0.0 : double{logit} - double{most};
}

}  // namespace

// Keeps the best in order, with their logits. Ids come in order, so a later one goes after equal logits.
void Logprobs::offer(int32_t id, float logit, uint32_t n_top) {
  if (!(logit > -INFINITY) ||
      (n_top_ == n_top && !(n_top != 0 && logit > top_[n_top - 1].logprob))) {
    return;
  }
  uint32_t at = n_top_ < n_top ? n_top_++ : n_top - 1;
  for (; at > 0 && top_[at - 1].logprob < logit; --at) {
    top_[at] = top_[at - 1];
  }
  top_[at] = {id, logit};
}

void Logprobs::compute(const float* logits, uint32_t n_vocab, int32_t chosen, uint32_t n_top) {
  n_top_ = 0;
  float most = -INFINITY;
  for (uint32_t id = 0; id < n_vocab; ++id) {
    most = logits[id] > most ? logits[id] : most;  // false for a NaN
    offer(static_cast<int32_t>(id), logits[id], n_top);
  }
  double total = 0;  // at least 1, the most likely token's share
  for (uint32_t id = 0; id < n_vocab; ++id) {
    total += logits[id] > -INFINITY ? std::exp(difference(logits[id], most)) : 0.0;
  }
  const auto logprob = [&](float logit) {
    return static_cast<float>(logit > -INFINITY ? difference(logit, most) - std::log(total)
                                                : -INFINITY);
  };
  chosen_ = logprob(logits[chosen]);
  for (uint32_t i = 0; i < n_top_; ++i) {
    top_[i].logprob = logprob(top_[i].logprob);
  }
}

}  // namespace oriel_internal
