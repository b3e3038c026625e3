// The public API with owners, without a test framework.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "oriel/oriel.h"

namespace oriel::test {

struct FreeModel {
  void operator()(oriel_model* model) const { oriel_model_free(model); }
};
struct DestroySession {
  void operator()(oriel_session* session) const { oriel_session_destroy(session); }
};
using ModelPtr = std::unique_ptr<oriel_model, FreeModel>;
using SessionPtr = std::unique_ptr<oriel_session, DestroySession>;

/// A loaded model with a session.
struct Loaded {
  ModelPtr model;
  SessionPtr session;
};

/// `n` ids below `n_vocab`, always the same.
inline std::vector<int32_t> someIds(size_t n, int32_t n_vocab) {
  std::vector<int32_t> ids(n);
  uint32_t state = 12345;
  for (int32_t& id : ids) {
    state = state * 1664525u + 1013904223u;
    id = static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(n_vocab));
  }
  return ids;
}

/// Infinite when the sizes differ.
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

/// Mean KL(reference || other) in nats over the rows.
inline double meanDivergence(const std::vector<std::vector<float>>& reference,
                      const std::vector<std::vector<float>>& other) {
  double total = 0;
  const auto logSumExp = [](const std::vector<float>& logits) {
    double most = -1e300;
    for (const float logit : logits) {
      most = std::max<double>(most, logit);
    }
    double sum = 0;
    for (const float logit : logits) {
      sum += std::exp(logit - most);
    }
    return most + std::log(sum);
  };
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

}  // namespace oriel::test
