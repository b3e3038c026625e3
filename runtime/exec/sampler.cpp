#include "exec/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/wipe.h"

namespace oriel {

void Sampler::init(uint32_t n_vocab, Arena* arena) {
  n_vocab_ = n_vocab;
  candidates_ = arena->take<Candidate>(n_vocab);
}

void Sampler::forget() {
  wipe(&state_, sizeof(state_));
  wipe(candidates_, uint64_t{n_vocab_} * sizeof(Candidate));
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

uint32_t Sampler::topK() const { return options_.greedy ? 1 : std::min(options_.top_k, n_vocab_); }

uint32_t Sampler::penalisedIds(int32_t* ids) const {
  if (options_.repeat_penalty == 1.0f) {
    return 0;
  }
  int32_t* const end = std::copy_n(
      state_.recent, std::min<uint64_t>(state_.n_recent, SamplerState::kRecentTokens), ids);
  std::sort(ids, end);
  return static_cast<uint32_t>(std::unique(ids, end) - ids);
}

float Sampler::penalised(float logit) const {
  return logit > 0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
}

// One pass over the vocabulary, which is large: almost every logit is compared with the least of
// the best so far and forgotten. Ids come in order, so that a later one loses a tie.
uint32_t Sampler::best(const float* logits, uint32_t k) {
  int32_t changed[SamplerState::kRecentTokens];
  const uint32_t n_changed = penalisedIds(changed);
  const uint32_t room = static_cast<uint32_t>(std::min<uint64_t>(n_vocab_, k + std::max(k, 64u)));
  uint32_t n = 0;
  float least = -INFINITY;
  const auto offer = [&](float logit, uint32_t id) {
    if (!(logit > least)) {  // nor for a NaN
      return;
    }
    if (n == room) {
      std::nth_element(candidates_, candidates_ + (k - 1), candidates_ + n);
      n = k;
      least = candidates_[k - 1].logit;
      if (!(logit > least)) {
        return;
      }
    }
    candidates_[n++] = {logit, static_cast<int32_t>(id)};
  };
  uint32_t id = 0;
  for (uint32_t i = 0; i <= n_changed; ++i) {
    const uint32_t end = i < n_changed ? static_cast<uint32_t>(changed[i]) : n_vocab_;
    for (; id < end; ++id) {
      offer(logits[id], id);
    }
    if (i < n_changed) {
      offer(penalised(logits[id]), id);
      ++id;
    }
  }
  if (n > k) {
    std::nth_element(candidates_, candidates_ + (k - 1), candidates_ + n);
  }
  return std::min(n, k);
}

int32_t Sampler::sample(const float* logits) { return draw(best(logits, topK())); }

bool Sampler::suffices(const TopTokens& top) const {
  const uint32_t k = topK();
  if (k > kMostTopK || !(options_.repeat_penalty >= 1.0f)) {
    return false;
  }
  int32_t changed[SamplerState::kRecentTokens];
  return top.all != 0 || k + penalisedIds(changed) <= top.count;
}

int32_t Sampler::sample(const TopTokens& top) {
  int32_t changed[SamplerState::kRecentTokens];
  const uint32_t n_changed = penalisedIds(changed);
  const uint32_t k = topK();
  const uint32_t enough = std::min(top.count, k + n_changed);
  uint32_t n = 0;
  for (uint32_t i = 0; i < enough; ++i) {
    const int32_t id = static_cast<int32_t>(top.best[i].id);
    const bool recent = std::binary_search(changed, changed + n_changed, id);
    const float logit = recent ? penalised(top.best[i].logit) : top.best[i].logit;
    if (logit > -INFINITY) {
      candidates_[n++] = {logit, id};
    }
  }
  if (n > k) {
    std::nth_element(candidates_, candidates_ + (k - 1), candidates_ + n);
  }
  return draw(std::min(n, k));
}

int32_t Sampler::draw(uint32_t n) {
  if (n == 0) {
    return 0;  // minus infinity everywhere
  }
  // Sorts no more of the candidates than are looked at.
  uint32_t sorted = 0;
  const auto candidate = [&](uint32_t i) {
    while (sorted <= i) {
      const uint32_t end = std::min(n, std::max(64u, 4 * sorted));
      if (end < n) {
        std::nth_element(candidates_ + sorted, candidates_ + end, candidates_ + n);
      }
      std::sort(candidates_ + sorted, candidates_ + end);
      sorted = end;
    }
    return candidates_[i];
  };
  const double most = candidate(0).logit;
  if (n == 1 || std::isinf(most)) {
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
      seen += std::exp(candidate(kept).logit - most);
      ++kept;
    }
    n = kept;
  }
  if (options_.min_p > 0.0f) {
    const double least = most + std::log(static_cast<double>(options_.min_p));
    uint32_t kept = 1;
    while (kept < n && candidate(kept).logit >= least) {
      ++kept;
    }
    n = kept;
  }

  double total = 0;
  for (uint32_t i = 0; i < n; ++i) {
    total += std::exp((candidates_[i].logit - most) / options_.temperature);
  }
  double left = uniform() * total;
  for (uint32_t i = 0; i < n; ++i) {
    left -= std::exp((candidate(i).logit - most) / options_.temperature);
    if (left < 0) {
      return candidates_[i].id;
    }
  }
  return candidates_[0].id;
}

}  // namespace oriel
