// Distances between results and a reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace oriel_internal::test {

/// The greater of two errors, NaN if one is NaN: std::max(a, b) is a if b is NaN.
inline double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

/// Infinite if the sizes differ.
template <typename A, typename B>
double relativeL2(const std::vector<A>& got, const std::vector<B>& want) {
  if (got.size() != want.size()) {
    return HUGE_VAL;
  }
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double d = static_cast<double>(got[i]) - static_cast<double>(want[i]);
    error += d * d;
    norm += static_cast<double>(want[i]) * static_cast<double>(want[i]);
  }
  return std::sqrt(error / norm);
}

/// ln sum exp(logit): minus this, logits are log-probabilities.
template <typename Number>
double logSumExp(const std::vector<Number>& logits) {
  double most = -1e300;
  for (const Number logit : logits) {
    most = std::max<double>(most, logit);
  }
  double sum = 0;
  for (const Number logit : logits) {
    sum += std::exp(logit - most);
  }
  return most + std::log(sum);
}

/// Mean KL(reference || other) in nats over the rows.
inline double meanDivergence(const std::vector<std::vector<float>>& reference,
                             const std::vector<std::vector<float>>& other) {
  double total = 0;
  for (size_t t = 0; t < reference.size(); ++t) {
    const double zp = logSumExp(reference[t]);
    const double zq = logSumExp(other[t]);
    for (size_t i = 0; i < reference[t].size(); ++i) {
      const double log_p = reference[t][i] - zp;
      total += std::exp(log_p) * (log_p - (other[t][i] - zq));
    }
  }
  return total / static_cast<double>(reference.size());
}

}  // namespace oriel_internal::test
