#include "exec/sampler.h"

#include <algorithm>
#include <cmath>

namespace oriel {

void Sampler::init(uint32_t n_vocab, Arena* arena) {
  n_vocab_ = n_vocab;
  candidates_ = arena->take<Candidate>(n_vocab);
}

void Sampler::start(const SamplerOptions& options) {
  options_ = options;
  state_.random = options.seed;
}

void Sampler::accept(int32_t id) {
  state_.recent[state_.n_recent % SamplerState::kRecentTokens] = id;
  ++state_.n_recent;
}

// SplitMix64 (Steele, Lea and Flood 2014), upper 53 bits.
double Sampler::uniform() {
  state_.random += 0x9e3779b97f4a7c15ull;
  uint64_t z = state_.random;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1.0p-53;
}

// Each recent token once, however often it occurred.
void Sampler::penalise() {
  const int32_t* recent = state_.recent;
  const uint64_t n = std::min<uint64_t>(state_.n_recent, SamplerState::kRecentTokens);
  for (uint64_t i = 0; i < n; ++i) {
    const int32_t id = recent[i];
    if (std::find(recent, recent + i, id) != recent + i) {
      continue;
    }
    float& logit = candidates_[id].logit;
    logit = logit > 0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
  }
}

int32_t Sampler::sample(const float* logits) {
  for (uint32_t i = 0; i < n_vocab_; ++i) {
    candidates_[i] = {std::isnan(logits[i]) ? -INFINITY : logits[i], static_cast<int32_t>(i)};
  }
  if (options_.repeat_penalty != 1.0f) {
    penalise();
  }
  if (options_.greedy) {
    return std::min_element(candidates_, candidates_ + n_vocab_)->id;
  }

  uint32_t n = std::min(options_.top_k, n_vocab_);
  std::partial_sort(candidates_, candidates_ + n, candidates_ + n_vocab_);
  const double most = candidates_[0].logit;
  if (std::isinf(most)) {
    return candidates_[0].id;
  }
  if (options_.top_p < 1.0f) {
    double total = 0;
    for (uint32_t i = 0; i < n; ++i) {
      total += std::exp(candidates_[i].logit - most);
    }
    double seen = 0;
    uint32_t kept = 0;
    while (kept < n && (kept == 0 || seen < options_.top_p * total)) {
      seen += std::exp(candidates_[kept].logit - most);
      ++kept;
    }
    n = kept;
  }
  if (options_.min_p > 0.0f) {
    const double least = most + std::log(static_cast<double>(options_.min_p));
    while (n > 1 && candidates_[n - 1].logit < least) {
      --n;
    }
  }

  double total = 0;
  for (uint32_t i = 0; i < n; ++i) {
    total += std::exp((candidates_[i].logit - most) / options_.temperature);
  }
  double left = uniform() * total;
  for (uint32_t i = 0; i < n; ++i) {
    left -= std::exp((candidates_[i].logit - most) / options_.temperature);
    if (left < 0) {
      return candidates_[i].id;
    }
  }
  return candidates_[0].id;
}

}  // namespace oriel
