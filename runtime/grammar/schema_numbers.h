// Exact JSON numbers.
#pragma once

#include <cstdint>

#include "grammar/dfa.h"
#include "json/json.h"

namespace oriel_internal {

/// Digits before the point (at least one, no leading zeros), then digits after it (no trailing zeros).
struct Decimal {
  static constexpr uint32_t kMostDigits = 120;

  bool negative = false;  ///< never of zero
  uint8_t n_whole = 1;
  uint8_t n_fraction = 0;
  char digits[kMostDigits] = {'0'};

  bool isZero() const { return n_whole == 1 && n_fraction == 0 && digits[0] == '0'; }
  bool isInteger() const { return n_fraction == 0; }
  /// Digit i of the fraction, '0' past its end.
  char fraction(uint32_t i) const { return i < n_fraction ? digits[n_whole + i] : '0'; }
  /// Counted from the first to the last nonzero digit.
  uint32_t significantDigits() const;
};

/// Parses a JSON number. False: too many digits.
bool readDecimal(const JsonText& text, Decimal* decimal);
/// Clamps a number that is too large to kMostDigits digits.
bool readBound(const JsonText& text, Decimal* decimal);
Decimal decimalOf(int64_t value);
/// Negative, 0 or positive, as a is less than, equal to or greater than b.
int compareDecimals(const Decimal& a, const Decimal& b);
/// Reads an integer from 0 to `most`; false for anything else.
bool asCount(const JsonValue& value, uint32_t most, uint32_t* count);

/// digits / 10^places. 10 and 2^64 do not divide digits.
struct Step {
  uint64_t digits = 0;  ///< 0: none
  uint32_t places = 0;
};
/// False if not positive, or with more than 15 digits or 20 places.
bool asStep(const Decimal& decimal, Step* step);
/// True if a validator that divides floating-point numbers accepts digits / 10^places as a multiple.
bool dividesAsDouble(uint64_t digits, uint32_t places, const Step& step);
/// Checks exactly, and also as doubles if there is a fraction.
bool isMultiple(const Decimal& value, const Step& step);

// Numbers with bounds and multiples, as expressions.

struct NumberFacts {
  static constexpr uint32_t kMostSteps = 4;

  bool integer = false;
  bool fraction = false;  ///< no integer
  bool has_min = false;
  bool has_max = false;
  bool above_min = false;  ///< the bound is exclusive
  bool below_max = false;
  Decimal min;
  Decimal max;
  Step steps[kMostSteps];  ///< must be a multiple of each
  uint32_t n_steps = 0;

  void addMin(const Decimal& bound, bool exclusive);
  void addMax(const Decimal& bound, bool exclusive);
  /// False: too many.
  bool addStep(const Step& step);
  bool isBounded() const { return has_min || has_max || n_steps != 0; }
  bool allows(const Decimal& value) const;
  bool operator==(const NumberFacts& other) const;
};

/// Integers are limited to those a double holds exactly. Other numbers have at most 15 digits, and without bounds an
/// exponent of at most two digits. `*expression` is kNever if no number fits. Returns null, or the reason why the
/// keyword is unsupported.
const char* numberExpression(const NumberFacts& facts, Grammar* grammar, ExprId* expression);

}  // namespace oriel_internal
