#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/half.h"

namespace oriel_internal::test_half {
namespace {

// Value of a half by its definition.
double valueOfHalf(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0) {
    return sign * std::ldexp(mantissa, -24);
  }
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

bool isFiniteHalf(uint16_t bits) { return ((bits >> 10) & 31) != 31; }

TEST(Half, every_finite_half_converts_exactly_and_back) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    if (isFiniteHalf(half)) {
      EXPECT_EQ(valueOfHalf(half), static_cast<double>(halfToFloat(half)));
      EXPECT_EQ(half, floatToHalf(halfToFloat(half)));
    }
  }
  EXPECT_TRUE(std::isinf(halfToFloat(0x7c00)));
  EXPECT_TRUE(std::isnan(halfToFloat(0x7e00)));
  EXPECT_TRUE(std::isnan(halfToFloat(floatToHalf(std::nanf("")))));
}

TEST(Half, rounding_goes_to_the_nearest_and_ties_to_even) {
  for (uint32_t bits = 0; bits + 1 < 0x7c00; ++bits) {
    const double low = valueOfHalf(static_cast<uint16_t>(bits));
    const double high = valueOfHalf(static_cast<uint16_t>(bits + 1));
    const float middle = static_cast<float>((low + high) / 2);  // exact: one more bit
    const uint16_t even = static_cast<uint16_t>(bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(even, floatToHalf(middle)) << bits;
    ASSERT_EQ(bits, floatToHalf(std::nextafter(middle, 0.0f))) << bits;
    ASSERT_EQ(bits + 1, floatToHalf(std::nextafter(middle, 1e9f))) << bits;
  }
  EXPECT_EQ(0x7bff, floatToHalf(65519.0f));
  EXPECT_EQ(0x7c00, floatToHalf(65520.0f));
  EXPECT_EQ(0xfc00, floatToHalf(-1e30f));
}

}  // namespace
}  // namespace oriel_internal::test_half
