// Numbers as JSON writes them, exact.
#pragma once

#include <cstdint>

#include "json/json.h"

namespace oriel_internal {

/// Digits before the point (at least one, no leading zeros), then digits behind it (no trailing zeros).
struct Decimal {
  static constexpr uint32_t kMostDigits = 120;

  bool negative = false;  ///< never of zero
  uint8_t n_whole = 1;
  uint8_t n_fraction = 0;
  char digits[kMostDigits] = {'0'};

  bool isZero() const { return n_whole == 1 && n_fraction == 0 && digits[0] == '0'; }
  bool isInteger() const { return n_fraction == 0; }
  /// Digit i of the fraction, '0' behind its end.
  char fraction(uint32_t i) const { return i < n_fraction ? digits[n_whole + i] : '0'; }
  /// From the first that is not zero to the last.
  uint32_t significantDigits() const;
};

/// `text` is a JSON number. False: it has more digits than fit.
bool readDecimal(const JsonText& text, Decimal* decimal);
/// One that is too large becomes one with kMostDigits digits.
bool readBound(const JsonText& text, Decimal* decimal);
Decimal decimalOf(int64_t value);
/// Negative, 0 or positive, as a is less than, equal to or greater than b.
int compareDecimals(const Decimal& a, const Decimal& b);
/// A number without fraction, 0 to `most`; false: it is none.
bool asCount(const JsonValue& value, uint32_t most, uint32_t* count);

/// digits / 10^places, divisible by neither 10 nor 2^64.
struct Step {
  uint64_t digits = 0;  ///< 0: none
  uint32_t places = 0;
};
/// False: not above zero, or of more digits than 15 or places than 20.
bool asStep(const Decimal& decimal, Step* step);
/// Whether a validator that divides floating-point numbers finds digits / 10^places to be a multiple.
bool dividesAsDouble(uint64_t digits, uint32_t places, const Step& step);
/// Exactly, and as doubles where there is a fraction.
bool isMultiple(const Decimal& value, const Step& step);

}  // namespace oriel_internal
