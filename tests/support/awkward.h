// Boundary values: small numbers, limits, powers of two and their neighbours, and NaN. Tests only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace oriel_internal::test {

/// `random()` gives 64 bits at a time. The same bits give the same numbers everywhere.
template <typename Random>
uint64_t awkwardNumber(Random& random) {
  const auto below = [&random](uint64_t end) { return static_cast<uint64_t>(random()) % end; };
  switch (below(6)) {
    case 0:
      return below(4);
    case 1:
      return UINT64_MAX - below(3);
    case 2:
      return (uint64_t{1} << below(64)) + below(3) - 1;
    case 3:
      return random();
    case 4:
      return below(70000);
    default:
      return static_cast<uint64_t>(-static_cast<int64_t>(below(300)));
  }
}

template <typename Random>
double awkwardReal(Random& random) {
  constexpr double kHuge = std::numeric_limits<double>::infinity();
  constexpr double kReals[] = {0,      -0.0,   -1,     1,
                               2,      8,      0.5,    1e-45,
                               1e-12,  1e-300, 1e38,   1e300,
                               -1e300, 1,      1e6,    65504,
                               1e4,    kHuge,  -kHuge, std::numeric_limits<double>::quiet_NaN()};
  return kReals[static_cast<uint64_t>(random()) % (sizeof(kReals) / sizeof(kReals[0]))];
}

}  // namespace oriel_internal::test
