#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kv/rope.h"

namespace oriel_internal::test_rope {
namespace {

// Angle of a phase in 80-bit arithmetic: position * theta^(-2i/d) reduced exactly to one turn.
long double exactAngle(double theta, uint32_t dims, uint32_t i, uint64_t position) {
  const long double frequency =
      std::pow(static_cast<long double>(theta), -2.0L * i / static_cast<long double>(dims));
  return std::remainder(frequency * static_cast<long double>(position), 2.0L * std::acos(-1.0L));
}

TEST(Rope, phases_agree_with_long_double_for_ever) {
  if (sizeof(long double) == sizeof(double)) {
    GTEST_SKIP() << "long double is no wider than double here: nothing to compare with";
  }
  for (const double theta : {10000.0, 500000.0, 1e6}) {
    for (const uint32_t dims : {8u, 64u, 128u}) {
      RopePhases phases;
      uint64_t steps[kMaxHeadDim / 2];
      phases.init(theta, dims, nullptr, 1.0, steps);
      std::vector<float> pairs(dims);
      for (const uint64_t position :
           {0ull, 1ull, 1000ull, (1ull << 20) + 7, (1ull << 24) + 12345, 1ull << 31}) {
        phases.rotations(position, pairs.data());
        for (uint32_t i = 0; i < dims / 2; ++i) {
          const long double angle = exactAngle(theta, dims, i, position);
          EXPECT_NEAR(static_cast<double>(std::cos(angle)), pairs[2 * i], 2e-7)
              << position << " " << i;
          EXPECT_NEAR(static_cast<double>(std::sin(angle)), pairs[2 * i + 1], 2e-7);
        }
      }
    }
  }
}

TEST(Rope, differences_of_positions_are_all_that_counts) {
  RopePhases phases;
  uint64_t steps[kMaxHeadDim / 2];
  phases.init(10000.0, 64, nullptr, 1.0, steps);
  // The phase is linear modulo a turn: exact, not approximately so, at any distance from zero.
  for (uint32_t i = 0; i < 32; ++i) {
    const uint64_t near = phases.step(i) * 1000 - phases.step(i) * 900;
    const uint64_t far =
        phases.step(i) * ((1ull << 50) + 1000) - phases.step(i) * ((1ull << 50) + 900);
    EXPECT_EQ(near, far);
  }
}

TEST(Rope, pairs_of_a_huge_divisor_never_turn) {
  constexpr uint32_t kDims = 16;
  double divisors[kDims / 2];
  for (uint32_t i = 0; i < kDims / 2; ++i) {
    divisors[i] = i < 3 ? 1.0 : 1e30;
  }
  RopePhases phases;
  uint64_t steps[kDims / 2];
  phases.init(1e6, kDims, divisors, 1.0, steps);
  for (const uint64_t position : {uint64_t{0}, uint64_t{1}, uint64_t{131071}, uint64_t{1} << 40,
                                  kMaxFirstPosition, ~uint64_t{0}}) {
    float pairs[kDims];
    phases.rotations(position, pairs);
    for (uint32_t i = 3; i < kDims / 2; ++i) {
      EXPECT_EQ(pairs[2 * i], 1.0f) << position;
      EXPECT_EQ(pairs[2 * i + 1], 0.0f) << position;
    }
    EXPECT_EQ(pairs[1] == 0.0f, position == 0) << "the first pair turns by one radian a token";
  }
}

}  // namespace
}  // namespace oriel_internal::test_rope
