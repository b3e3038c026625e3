// Written for auto-vectorisation: lanes are elements of small arrays, without branches.
#include "measure/log_sum_exp.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace cli {
namespace {

constexpr size_t kLanes = 16;

// expOf of a NaN may look like a number, so NaNs are checked here.
bool areNumbers(const float* logits, size_t count) {
  uint32_t others = 0;
  for (size_t i = 0; i < count; ++i) {
    others |= std::isnan(logits[i]) ? 1u : 0u;
  }
  return others == 0;
}

float largest(const float* logits, size_t count) {
  float most[kLanes];
  std::fill_n(most, kLanes, logits[0]);
  const size_t whole = count / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) {
      most[k] = logits[i + k] > most[k] ? logits[i + k] : most[k];
    }
  }
  return std::max(*std::max_element(most, most + kLanes),
                  whole < count ? *std::max_element(logits + whole, logits + count) : logits[0]);
}

// exp(x) for x <= 0. 2^t is 2^n times 2^r with r in [-1/2, 1/2]; the polynomial is the Taylor series of 2^r, whose next
// term is below 1.6e-7.
inline float expOf(float x) {
  constexpr float kLog2E = 1.44269504089f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to integers
  const float t = std::max(x, -80.0f) * kLog2E;
  const float shifted = t + kRound;
  const float n = shifted - kRound;
  const float r = t - n;
  float p = 1.540353039e-4f;
  p = p * r + 1.333355815e-3f;
  p = p * r + 9.618129108e-3f;
  p = p * r + 5.550410866e-2f;
  p = p * r + 2.402265070e-1f;
  p = p * r + 6.931471806e-1f;
  p = p * r + 1.0f;
  uint32_t exponent;  // n, in the lowest bits; undefined for NaN
  std::memcpy(&exponent, &shifted, sizeof(exponent));
  uint32_t bits;
  std::memcpy(&bits, &p, sizeof(bits));
  bits += exponent << 23;
  std::memcpy(&p, &bits, sizeof(p));
  return p;
}

}  // namespace

double logSumExp(const float* logits, size_t count) {
  const float most = largest(logits, count);
  if (!areNumbers(logits, count) || std::isinf(most)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  double sums[kLanes] = {};
  const size_t whole = count / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    float values[kLanes];
    for (size_t k = 0; k < kLanes; ++k) {
      values[k] = expOf(logits[i + k] - most);
    }
    for (size_t k = 0; k < kLanes; ++k) {
      sums[k] += static_cast<double>(values[k]);
    }
  }
  double sum = 0;
  for (const double part : sums) {
    sum += part;
  }
  for (size_t i = whole; i < count; ++i) {
    sum += static_cast<double>(expOf(logits[i] - most));
  }
  return static_cast<double>(most) + std::log(sum);
}

}  // namespace cli
