#include "exec/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

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

// Chooses among the remaining candidates after logits have been adjusted.

/// Candidates in descending order. Each step keeps some of them. Sorts only the candidates that a step reads.
class Sampler::Choice {
 public:
  Choice(Candidate* candidates, uint32_t n)
      : candidates_(candidates), n_(n), most_(candidate(0).logit) {}

  double most() const { return most_; }
  uint32_t count() const { return n_; }
  Candidate candidate(uint32_t i) {
    while (sorted_ <= i) {
      const uint32_t end = std::min(n_, std::max(64u, 4 * sorted_));
      if (end < n_) {
        std::nth_element(candidates_ + sorted_, candidates_ + end, candidates_ + n_);
      }
      std::sort(candidates_ + sorted_, candidates_ + end);
      sorted_ = end;
    }
    return candidates_[i];
  }

  void keepFrom(double least) {
    uint32_t kept = 1;
    while (kept < n_ && candidate(kept).logit >= least) {
      ++kept;
    }
    shorten(kept);
  }
  void keepTypical(double mass);
  void keepMass(double mass);
  void leaveOutTop(double threshold);
  int32_t draw(double temperature, double uniform);

 private:
  double weight(uint32_t i) const { return std::exp(candidates_[i].logit - most_); }
  double total() const {
    double total = 0;
    for (uint32_t i = 0; i < n_; ++i) {
      total += weight(i);
    }
    return total;
  }
  void shorten(uint32_t n) {
    n_ = n;
    sorted_ = std::min(sorted_, n);
  }
  void sortAll() { (void)candidate(n_ - 1); }

  Candidate* candidates_;
  uint32_t n_;
  uint32_t sorted_ = 0;
  const double most_;  ///< the logit of the first candidate
};

/// Locally typical sampling (Meister, Pimentel, Wiher and Cotterell 2022).
void Sampler::Choice::keepTypical(double mass) {
  sortAll();
  const double total = this->total();
  const double log_total = std::log(total);
  double entropy = 0;
  for (uint32_t i = 0; i < n_; ++i) {
    const double surprise = log_total - (candidates_[i].logit - most_);
    const double probability = weight(i) / total;
    entropy += probability > 0 ? probability * surprise : 0;
  }
  const auto distance = [&](const Candidate& candidate) {
    return std::fabs(log_total - (candidate.logit - most_) - entropy);
  };
  std::sort(candidates_, candidates_ + n_, [&](const Candidate& a, const Candidate& b) {
    const double of_a = distance(a);
    const double of_b = distance(b);
    return of_a < of_b || (of_a == of_b && a < b);
  });
  double seen = 0;
  uint32_t kept = 0;
  while (kept < n_ && seen <= mass * total) {
    seen += weight(kept++);
  }
  n_ = kept;
  std::sort(candidates_, candidates_ + n_);
  sorted_ = n_;
}

void Sampler::Choice::keepMass(double mass) {
  const double total = this->total();
  double seen = 0;
  uint32_t kept = 0;
  while (kept < n_ && (kept == 0 || seen < mass * total)) {
    seen += std::exp(candidate(kept).logit - most_);
    ++kept;
  }
  shorten(kept);
}

void Sampler::Choice::leaveOutTop(double threshold) {
  sortAll();
  const double least = threshold * total();
  uint32_t above = 0;
  while (above < n_ && weight(above) >= least) {
    ++above;
  }
  if (above > 1) {
    candidates_ += above - 1;
    n_ -= above - 1;
    sorted_ = n_;
  }
}

int32_t Sampler::Choice::draw(double temperature, double uniform) {
  double total = 0;
  for (uint32_t i = 0; i < n_; ++i) {
    total += std::exp((candidates_[i].logit - most_) / temperature);
  }
  double left = uniform * total;
  for (uint32_t i = 0; i < n_; ++i) {
    left -= std::exp((candidate(i).logit - most_) / temperature);
    if (left < 0) {
      return candidates_[i].id;
    }
  }
  return candidates_[0].id;
}

double Sampler::leastBySigma(const float* logits) const {
  double most = -INFINITY;
  double mean = 0;
  double squares = 0;  // squared differences from the mean (Welford 1962)
  uint64_t n = 0;
  uint32_t next = 0;
  for (uint32_t id = 0; id < n_vocab_; ++id) {
    const bool is_adjusted =
        next < n_adjustments_ && adjustments_[next].id == static_cast<int32_t>(id);
    const float logit = is_adjusted ? adjusted(logits[id], adjustments_[next]) : logits[id];
    next += is_adjusted ? 1 : 0;
    if (!(logit > -INFINITY) || !allowed(static_cast<int32_t>(id))) {
      continue;
    }
    most = std::max(most, static_cast<double>(logit));
    const double difference = logit - mean;
    mean += difference / static_cast<double>(++n);
    squares += difference * (logit - mean);
  }
  return n < 2 ? -INFINITY
               : most - options_.top_n_sigma * std::sqrt(squares / static_cast<double>(n));
}

int32_t Sampler::draw(uint32_t n) {
  if (n == 0) {
    return lowestAllowed();  // all logits are minus infinity
  }
  Choice choice(candidates_, n);
  if (n == 1 || std::isinf(choice.most())) {
    return candidates_[0].id;
  }
  if (least_by_sigma_ > -INFINITY) {
    choice.keepFrom(least_by_sigma_);
  }
  if (options_.typical_p < 1.0f) {
    choice.keepTypical(options_.typical_p);
  }
  if (options_.top_p < 1.0f) {
    choice.keepMass(options_.top_p);
  }
  if (options_.min_p > 0.0f) {
    choice.keepFrom(choice.candidate(0).logit + std::log(static_cast<double>(options_.min_p)));
  }
  // A reply without XTC draws no extra number, so its random numbers do not change.
  if (options_.xtc_probability > 0.0f && options_.xtc_threshold <= 0.5f &&
      uniform() <= options_.xtc_probability) {
    choice.leaveOutTop(options_.xtc_threshold);
  }
  return choice.draw(options_.temperature, uniform());
}

// DRY: tokens that would repeat a sequence of the context become less likely.

void Sampler::copyBreakers(const DryOptions& options) {
  n_breakers_ = 0;
  for (uint32_t i = 0; options.text_of != nullptr && i < options.n_breakers; ++i) {
    Breaker& breaker = breakers_[n_breakers_++];
    breaker.bytes = static_cast<uint32_t>(std::strlen(options.breakers[i]));
    std::memcpy(breaker.text, options.breakers[i], breaker.bytes);
  }
  options_.dry.breakers = nullptr;  // owned by the caller
}

/// Number of tokens after the last breaker, among the last `n` tokens. A breaker may begin in one token and end in
/// another.
uint32_t Sampler::unbrokenTokens(uint32_t n) const {
  if (n_breakers_ == 0) {
    return n;
  }
  constexpr uint32_t kMost = DryOptions::kMostBreakerBytes;
  char last[kMost] = {};  // latest bytes, in order
  uint32_t begun = 0;     // bytes in `last`
  uint32_t unbroken = 0;
  for (uint32_t i = n; i > 0; --i) {
    const TokenText text = options_.dry.text_of(recent(i - 1), options_.dry.text_user);
    bool breaks = false;
    for (size_t k = 0; k < text.bytes; ++k) {
      std::memmove(last, last + 1, kMost - 1);
      last[kMost - 1] = text.data[k];
      begun = std::min(begun + 1, kMost);
      for (uint32_t b = 0; b < n_breakers_ && !breaks; ++b) {
        const Breaker& breaker = breakers_[b];
        breaks = breaker.bytes <= begun &&
                 std::memcmp(last + kMost - breaker.bytes, breaker.text, breaker.bytes) == 0;
      }
    }
    unbroken = breaks ? 0 : unbroken + 1;
  }
  wipe(last, sizeof(last));
  return unbroken;
}

// At most 256 * 256 / 2 comparisons.
void Sampler::repeatedLengths(uint32_t* lengths, uint32_t n) const {
  std::fill_n(lengths, n, 0u);
  const uint32_t most = unbrokenTokens(n);
  for (uint32_t at = 1; at < n; ++at) {
    uint32_t length = 0;
    while (length < most && at + length < n && recent(at + length) == recent(length)) {
      ++length;
    }
    lengths[at - 1] = length;  // recent(at - 1) came after recent(at)
  }
}

float Sampler::dryPenalty(uint32_t length) const {
  const DryOptions& dry = options_.dry;
  if (length == 0 || length < dry.allowed_length) {
    return 0.0f;
  }
  const double power = std::pow(static_cast<double>(dry.base), length - dry.allowed_length);
  return static_cast<float>(
      std::min(dry.multiplier * power, static_cast<double>(std::numeric_limits<float>::max())));
}

}  // namespace oriel_internal
