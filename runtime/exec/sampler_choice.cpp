// Chooses among the remaining candidates after logits have been adjusted.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "exec/sampler.h"

namespace oriel_internal {

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
