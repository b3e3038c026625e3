#include "exec/sampler.h"

#include <algorithm>
#include <cmath>

namespace oriel_internal {

namespace {

constexpr uint32_t kWordBits = 32;
constexpr uint32_t kAllBits = ~0u;

uint32_t wordsOf(uint32_t n_vocab) { return (n_vocab + kWordBits - 1) / kWordBits; }

// The index of the lowest 1 bit (Leiserson, Prokop and Randall 1998).
uint32_t lowestBit(uint32_t bits) {
  static constexpr uint8_t kPlaces[32] = {0,  1,  28, 2,  29, 14, 24, 3,  30, 22, 20,
                                          15, 25, 17, 4,  8,  31, 27, 13, 23, 21, 19,
                                          16, 7,  26, 12, 18, 6,  11, 5,  10, 9};
  return kPlaces[((bits & (0u - bits)) * 0x077CB531u) >> 27];
}

}  // namespace

/// Collects the k best of all offered logits. Almost every logit is only compared with the lowest of the best so far.
/// Ids must come in order, so that a later one loses a tie.
class Sampler::Best {
 public:
  Best(Candidate* candidates, uint32_t n_vocab, uint32_t k)
      : candidates_(candidates),
        k_(k),
        room_(static_cast<uint32_t>(std::min<uint64_t>(n_vocab, uint64_t{k} + std::max(k, 64u)))) {}

  void offer(float logit, uint32_t id) {
    if (logit > least_) {  // false for a NaN
      keep(logit, id);
    }
  }
  float least() const { return least_; }
  /// Requires a logit above least().
  void keep(float logit, uint32_t id) {
    if (n_ == room_) {
      std::nth_element(candidates_, candidates_ + (k_ - 1), candidates_ + n_);
      n_ = k_;
      least_ = candidates_[k_ - 1].logit;
      if (!(logit > least_)) {
        return;
      }
    }
    candidates_[n_++] = {logit, static_cast<int32_t>(id)};
  }
  uint32_t finish() {
    if (n_ > k_) {
      std::nth_element(candidates_, candidates_ + (k_ - 1), candidates_ + n_);
    }
    return std::min(n_, k_);
  }

 private:
  Candidate* const candidates_;
  const uint32_t k_;
  const uint32_t room_;
  uint32_t n_ = 0;
  float least_ = -INFINITY;
};

void Sampler::init(uint32_t n_vocab, Arena* arena) {
  n_vocab_ = n_vocab;
  candidates_ = arena->take<Candidate>(n_vocab);
  adjustments_ = arena->take<Adjustment>(SamplerState::kRecentTokens + kMaxBiases);
  biases_ = arena->take<Adjustment>(kMaxBiases);
  held_back_ = arena->take<uint32_t>(wordsOf(n_vocab));
}

void Sampler::forget() {
  wipe(candidates_, uint64_t{n_vocab_} * sizeof(Candidate));
  wipe(adjustments_, sizeof(Adjustment) * (SamplerState::kRecentTokens + kMaxBiases));
  wipe(biases_, sizeof(Adjustment) * kMaxBiases);
  wipe(breakers_, sizeof(breakers_));
  start({});
}

void Sampler::start(const SamplerOptions& options) {
  options_ = options;
  state_->random = options.seed;
  mask_ = nullptr;
  holds_ = false;
  std::fill_n(held_back_, wordsOf(n_vocab_), 0u);
  copyBiases(options);
  copyBreakers(options.dry);
  prepared_ = false;
}

void Sampler::copyBiases(const SamplerOptions& options) {
  for (uint32_t i = 0; i < options.n_biases; ++i) {
    biases_[i] = {options.biases[i].id, 0, options.biases[i].bias};
  }
  // The lowest first: minus infinity then outweighs sums that overflow.
  std::sort(biases_, biases_ + options.n_biases, [](const Adjustment& a, const Adjustment& b) {
    return a.id < b.id || (a.id == b.id && a.shift < b.shift);
  });
  n_biases_ = 0;
  for (uint32_t i = 0; i < options.n_biases; ++i) {
    if (n_biases_ != 0 && biases_[n_biases_ - 1].id == biases_[i].id) {
      biases_[n_biases_ - 1].shift += biases_[i].shift;
    } else {
      biases_[n_biases_++] = biases_[i];
    }
  }
  options_.biases = nullptr;  // owned by the caller
}

void Sampler::accept(int32_t id) {
  state_->recent[state_->n_recent % SamplerState::kRecentTokens] = id;
  ++state_->n_recent;
  prepared_ = false;
}

// SplitMix64 (Steele, Lea and Flood 2014), upper 53 bits.
double Sampler::uniform() {
  state_->random += 0x9e3779b97f4a7c15ull;
  uint64_t z = state_->random;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1.0p-53;
}

uint32_t Sampler::topK() const { return options_.greedy ? 1 : std::min(options_.top_k, n_vocab_); }

uint32_t Sampler::penalties(Adjustment* out) const {
  if (!penalises()) {
    return 0;
  }
  struct Recent {
    int32_t id;
    uint32_t times;   // occurrences in the repetition window
    uint32_t length;  // length of the DRY sequence
    bool operator<(const Recent& other) const { return id < other.id; }
  };
  WipedArray<Recent, SamplerState::kRecentTokens> tokens;
  WipedArray<uint32_t, SamplerState::kRecentTokens> lengths;
  const bool dry = options_.dry.multiplier != 0.0f;
  const uint32_t window = std::max(options_.repeat_window, dry ? options_.dry.window : 0);
  const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(state_->n_recent, window));
  if (dry) {
    repeatedLengths(&lengths[0], std::min(n, options_.dry.window));
  }
  for (uint32_t i = 0; i < n; ++i) {
    const bool punished = dry && i < options_.dry.window;
    tokens[i] = {recent(i), i < options_.repeat_window ? 1u : 0u, punished ? lengths[i] : 0};
  }
  std::sort(&tokens[0], &tokens[0] + n);
  uint32_t n_out = 0;
  for (uint32_t i = 0; i < n;) {
    Recent all = tokens[i];
    for (++i; i < n && tokens[i].id == all.id; ++i) {
      all.times += tokens[i].times;
      all.length = std::max(all.length, tokens[i].length);
    }
    Adjustment next = {all.id, all.times != 0 ? 1u : 0u, 0.0f};
    if (all.times != 0) {
      const float times = static_cast<float>(all.times);
      next.shift = -(options_.presence_penalty + options_.frequency_penalty * times);
    }
    next.shift -= dry ? dryPenalty(all.length) : 0.0f;
    if (next.repeated != 0 || next.shift != 0.0f) {
      out[n_out++] = next;
    }
  }
  return n_out;
}

void Sampler::prepare() {
  if (prepared_) {
    return;
  }
  WipedArray<Adjustment, SamplerState::kRecentTokens> recent;
  const uint32_t n_recent = penalties(recent);
  n_adjustments_ = 0;
  uint32_t bias = 0;
  for (uint32_t i = 0; i < n_recent || bias < n_biases_;) {
    const bool of_recent = i < n_recent && (bias == n_biases_ || recent[i].id <= biases_[bias].id);
    Adjustment next = of_recent ? recent[i++] : biases_[bias++];
    if (of_recent && bias < n_biases_ && biases_[bias].id == next.id) {
      next.shift += biases_[bias++].shift;
    }
    adjustments_[n_adjustments_++] = next;
  }
  prepared_ = true;
}

const Sampler::Adjustment* Sampler::adjustmentOf(int32_t id) const {
  const Adjustment* const begin = adjustments_;
  const Adjustment* const end = begin + n_adjustments_;
  const Adjustment* const found =
      std::lower_bound(begin, end, id, [](const Adjustment& by, int32_t of) { return by.id < of; });
  return found != end && found->id == id ? found : nullptr;
}

float Sampler::adjusted(float logit, const Adjustment& by) const {
  if (by.repeated != 0) {
    logit = logit > 0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
  }
  return logit + by.shift;
}

uint32_t Sampler::allowedWord(uint32_t word) const {
  const uint32_t given = mask_ != nullptr ? mask_[word] : kAllBits;
  return holds_ ? given & ~held_back_[word] : given;
}

int32_t Sampler::lowestAllowed() const {
  for (uint32_t id = 0; id < n_vocab_; ++id) {
    const Adjustment* const by = adjustmentOf(static_cast<int32_t>(id));
    if (allowed(static_cast<int32_t>(id)) && (by == nullptr || by->shift > -INFINITY)) {
      return static_cast<int32_t>(id);
    }
  }
  return kNone;
}

void Sampler::offerAll(const float* logits, uint32_t begin, uint32_t end, Best* best) const {
  float least = best->least();  // kept in a register
  for (uint32_t id = begin; id < end; ++id) {
    if (logits[id] > least) {
      best->keep(logits[id], id);
      least = best->least();
    }
  }
}

void Sampler::offerAllowed(const float* logits, uint32_t begin, uint32_t end, Best* best) const {
  for (uint32_t id = begin; id < end;) {
    const uint32_t first = id / kWordBits * kWordBits;
    const uint32_t last = std::min(end, first + kWordBits);
    uint32_t bits = allowedWord(id / kWordBits) & (kAllBits << (id - first));
    if (last - first < kWordBits) {
      bits &= ~(kAllBits << (last - first));
    }
    if (bits == kAllBits) {
      offerAll(logits, first, last, best);
      bits = 0;
    }
    for (; bits != 0; bits &= bits - 1) {
      const uint32_t chosen = first + lowestBit(bits);
      best->offer(logits[chosen], chosen);
    }
    id = last;
  }
}

// One pass over the large vocabulary, in runs between the few tokens with adjusted logits.
uint32_t Sampler::best(const float* logits, uint32_t k) {
  Best best(candidates_, n_vocab_, k);
  uint32_t id = 0;
  for (uint32_t i = 0; i <= n_adjustments_; ++i) {
    const uint32_t end = i < n_adjustments_ ? static_cast<uint32_t>(adjustments_[i].id) : n_vocab_;
    if (masked()) {
      offerAllowed(logits, id, end, &best);
    } else {
      offerAll(logits, id, end, &best);
    }
    if (i < n_adjustments_ && allowed(adjustments_[i].id)) {
      best.offer(adjusted(logits[end], adjustments_[i]), end);
    }
    id = end + 1;
  }
  return best.finish();
}

int32_t Sampler::sample(const float* logits) {
  prepare();
  least_by_sigma_ = spreads() ? leastBySigma(logits) : -INFINITY;
  return draw(best(logits, topK()));
}

float Sampler::adjusted(const TopToken& token) const {
  const int32_t id = static_cast<int32_t>(token.id);
  if (!allowed(id)) {
    return -INFINITY;
  }
  const Adjustment* const by = adjustmentOf(id);
  return by != nullptr ? adjusted(token.logit, *by) : token.logit;
}

bool Sampler::suffices(const TopTokens& top) {
  const uint32_t k = topK();
  if (k > kMostTopK || spreads() || !(options_.repeat_penalty >= 1.0f)) {
    return false;
  }
  if (top.all != 0) {
    return true;
  }
  if (top.count < k) {
    return false;
  }
  prepare();
  uint32_t rising = 0;
  for (uint32_t i = 0; i < n_adjustments_; ++i) {
    rising += adjustments_[i].shift > 0 ? 1 : 0;
  }
  const TopToken& last = top.best[top.count - 1];
  uint32_t enough = 0;
  for (uint32_t i = 0; i < top.count; ++i) {
    const float logit = adjusted(top.best[i]);
    enough += logit > last.logit || (logit == last.logit && top.best[i].id <= last.id) ? 1 : 0;
    const Adjustment* const by = adjustmentOf(static_cast<int32_t>(top.best[i].id));
    rising -= by != nullptr && by->shift > 0 ? 1 : 0;
  }
  return enough >= k && rising == 0;
}

int32_t Sampler::sample(const TopTokens& top) {
  prepare();
  least_by_sigma_ = -INFINITY;
  const uint32_t k = topK();
  uint32_t n = 0;
  for (uint32_t i = 0; i < top.count; ++i) {
    const float logit = adjusted(top.best[i]);
    if (logit > -INFINITY) {
      candidates_[n++] = {logit, static_cast<int32_t>(top.best[i].id)};
    }
  }
  if (n > k) {
    std::nth_element(candidates_, candidates_ + (k - 1), candidates_ + n);
  }
  return draw(std::min(n, k));
}

}  // namespace oriel_internal
