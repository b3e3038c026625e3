// Chooses among the remaining candidates after logits have been adjusted.
#include <algorithm>
#include <cmath>

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

}  // namespace oriel_internal
