#include "grammar/decimal.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace oriel_internal {
namespace {

constexpr int64_t kMostExponent = 1000000;
constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9, 1e10,
                              1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20};

bool isDigit(char c) { return c >= '0' && c <= '9'; }

int64_t readExponent(const char* at, const char* end) {
  const bool negative = at != end && *at == '-';
  at += at != end && !isDigit(*at) ? 1 : 0;
  int64_t value = 0;
  for (; at != end; ++at) {
    value = std::min(value * 10 + (*at - '0'), kMostExponent);
  }
  return negative ? -value : value;
}

}  // namespace

bool readDecimal(const JsonText& text, Decimal* decimal) {
  const char* at = text.data;
  const char* const end = text.data + text.bytes;
  *decimal = {};
  decimal->negative = *at == '-';
  at += decimal->negative ? 1 : 0;
  const char* const mantissa_end =
      std::find_if(at, end, [](char c) { return c == 'e' || c == 'E'; });
  int64_t point = std::find(at, mantissa_end, '.') - at;  // digits before the point
  point += mantissa_end != end ? readExponent(mantissa_end + 1, end) : 0;
  // Counts digits from the first to the last nonzero one; `skipped` counts the digits before.
  const auto counts = [](char c) { return c >= '1' && c <= '9'; };
  const char* const first = std::find_if(at, mantissa_end, counts);
  if (first == mantissa_end) {
    *decimal = {};
    return true;
  }
  const char* last = mantissa_end;
  while (!counts(last[-1])) {
    --last;
  }
  const int64_t skipped = std::count_if(at, first, isDigit);
  const int64_t n_digits = std::count_if(first, last, isDigit);
  point -= skipped;
  const int64_t n_whole = std::max<int64_t>(point, 1);
  const int64_t n_fraction = std::max<int64_t>(n_digits - point, 0);
  decimal->n_whole = static_cast<uint8_t>(std::min<int64_t>(n_whole, Decimal::kMostDigits));
  if (n_whole + n_fraction > Decimal::kMostDigits) {
    return false;
  }
  decimal->n_fraction = static_cast<uint8_t>(n_fraction);
  std::fill_n(decimal->digits, n_whole + n_fraction, '0');
  char* to = decimal->digits + n_whole - point;
  for (at = first; at != last; ++at) {
    if (isDigit(*at)) {
      *to++ = *at;
    }
  }
  return true;
}

bool readBound(const JsonText& text, Decimal* decimal) {
  if (readDecimal(text, decimal)) {
    return true;
  }
  if (decimal->n_whole < Decimal::kMostDigits) {
    return false;
  }
  std::fill_n(decimal->digits, Decimal::kMostDigits, '9');
  return true;
}

Decimal decimalOf(int64_t value) {
  Decimal decimal;
  decimal.negative = value < 0;
  uint64_t rest = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  char reversed[24];
  uint32_t n = 0;
  do {
    reversed[n++] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  std::reverse_copy(reversed, reversed + n, decimal.digits);
  decimal.n_whole = static_cast<uint8_t>(n);
  return decimal;
}

uint32_t Decimal::significantDigits() const {
  const uint32_t n = n_whole + n_fraction;
  uint32_t first = 0;
  while (first < n && digits[first] == '0') {
    ++first;
  }
  uint32_t last = n;
  while (last > first && digits[last - 1] == '0') {
    --last;
  }
  return last - first;
}

int compareDecimals(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) {
    return a.negative ? -1 : 1;
  }
  const int sign = a.negative ? -1 : 1;
  if (a.n_whole != b.n_whole) {
    return a.n_whole < b.n_whole ? -sign : sign;
  }
  const uint32_t n = a.n_whole + std::max<uint32_t>(a.n_fraction, b.n_fraction);
  for (uint32_t i = 0; i < n; ++i) {
    const char x = i < a.n_whole ? a.digits[i] : a.fraction(i - a.n_whole);
    const char y = i < b.n_whole ? b.digits[i] : b.fraction(i - b.n_whole);
    if (x != y) {
      return x < y ? -sign : sign;
    }
  }
  return 0;
}

bool asCount(const JsonValue& value, uint32_t most, uint32_t* count) {
  Decimal decimal;
  if (!value.isNumber() || !readDecimal(value.text(), &decimal) || decimal.negative ||
      !decimal.isInteger()) {
    return false;
  }
  uint64_t n = 0;
  for (uint32_t i = 0; i < decimal.n_whole; ++i) {
    n = std::min<uint64_t>(n * 10 + static_cast<uint64_t>(decimal.digits[i] - '0'), most);
  }
  *count = static_cast<uint32_t>(n);
  return true;
}

bool asStep(const Decimal& decimal, Step* step) {
  uint64_t n = 0;
  if (decimal.negative || decimal.isZero() || decimal.n_fraction > 20 ||
      decimal.significantDigits() > 15 || decimal.n_whole > 15) {
    return false;
  }
  for (uint32_t i = 0; i < decimal.n_whole + uint32_t{decimal.n_fraction}; ++i) {
    n = n * 10 + static_cast<uint64_t>(decimal.digits[i] - '0');
  }
  *step = {n, decimal.n_fraction};
  return true;
}

bool dividesAsDouble(uint64_t digits, uint32_t places, const Step& step) {
  const double value = static_cast<double>(digits) / kPowers[places];
  const double quotient = value / (static_cast<double>(step.digits) / kPowers[step.places]);
  return quotient == std::floor(quotient) && std::isfinite(quotient);
}

bool isMultiple(const Decimal& value, const Step& step) {
  if (value.n_fraction > step.places) {
    return false;
  }
  uint64_t rest = 0;
  uint64_t digits = 0;
  bool small = true;
  for (uint32_t i = 0; i < value.n_whole + step.places; ++i) {
    const char c = i < value.n_whole ? value.digits[i] : value.fraction(i - value.n_whole);
    rest = (rest * 10 + static_cast<uint64_t>(c - '0')) % step.digits;
    small = small && digits < (uint64_t{1} << 53) / 10;
    digits = small ? digits * 10 + static_cast<uint64_t>(c - '0') : 0;
  }
  return rest == 0 && (!small || dividesAsDouble(digits, step.places, step));
}

}  // namespace oriel_internal
