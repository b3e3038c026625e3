#include "kv/memory.h"

#include <cmath>

namespace oriel_internal {
namespace {

constexpr long double kPi = 3.14159265358979323846264338327950288L;

// turns >= 0 -> turns * 2^64 modulo 2^64, rounded to nearest.
uint64_t turnsToPhase(long double turns) {
  const long double scaled = std::floor(std::ldexp(turns - std::floor(turns), 64) + 0.5L);
  const long double wrap = std::ldexp(1.0L, 64);
  return scaled >= wrap ? 0 : static_cast<uint64_t>(scaled);
}

}  // namespace

void RopePhases::init(double theta, uint32_t dims, const double* divisors, double magnitude,
                      uint64_t* steps) {
  steps_ = steps;
  n_ = dims / 2;
  magnitude_ = magnitude;
  for (uint32_t i = 0; i < n_; ++i) {
    const long double exponent = -2.0L * i / dims;
    const long double divisor = divisors != nullptr ? divisors[i] : 1.0L;
    steps_[i] =
        turnsToPhase(std::pow(static_cast<long double>(theta), exponent) / divisor / (2.0L * kPi));
  }
}

void RopePhases::rotations(uint64_t position, float* pairs, double scale) const {
  const double magnitude = magnitude_ * scale;
  for (uint32_t i = 0; i < n_; ++i) {
    const uint64_t phase = steps_[i] * position;
    // Signed, so that angles stay within half a turn, where double is most precise.
    const double turns = std::ldexp(static_cast<double>(static_cast<int64_t>(phase)), -64);
    const double angle = turns * static_cast<double>(2.0L * kPi);
    pairs[2 * i] = static_cast<float>(magnitude * std::cos(angle));
    pairs[2 * i + 1] = static_cast<float>(magnitude * std::sin(angle));
  }
}

}  // namespace oriel_internal
