#include "jinja/jinja_number.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace oriel_internal::jinja {
namespace {

constexpr int kMaxDigits = 17;              // of a double
constexpr size_t kMaxReadBytes = 400;       // of a parsed number
constexpr double kFewDigitsBelow = 1e-290;  // doubles have fewer than 15 digits there

struct Decimal {
  char digits[kMaxDigits + 1] = "";
  int n = 0;
  int exponent = 0;  // of the first digit
};

Decimal digitsOf(double value, int precision) {
  char text[64] = "";
  std::snprintf(text, sizeof text, "%.*e", precision - 1, value);
  Decimal decimal;
  const char* at = text;
  for (; *at != '\0' && *at != 'e'; ++at) {
    if (*at >= '0' && *at <= '9' && decimal.n < kMaxDigits) {
      decimal.digits[decimal.n++] = *at;
    }
  }
  decimal.exponent = *at == 'e' ? std::atoi(at + 1) : 0;
  while (decimal.n > 1 && decimal.digits[decimal.n - 1] == '0') {
    --decimal.n;
  }
  decimal.digits[decimal.n] = '\0';
  return decimal;
}

bool givesAgain(double value, int precision) {
  char text[64] = "";
  std::snprintf(text, sizeof text, "%.*e", precision - 1, value);
  return std::strtod(text, nullptr) == value;  // snprintf and strtod use the same decimal point
}

Decimal shortest(double value) {
  int precision = value < kFewDigitsBelow ? 1 : 15;
  while (precision < kMaxDigits && !givesAgain(value, precision)) {
    ++precision;
  }
  return digitsOf(value, precision);
}

int layOut(const Decimal& d, char* out) {
  if (d.exponent < -4 || d.exponent >= 16) {
    return std::snprintf(out, kMaxNumberBytes, "%c%s%se%+03d", d.digits[0], d.n > 1 ? "." : "",
                         d.digits + 1, d.exponent);
  }
  if (d.exponent < 0) {
    return std::snprintf(out, kMaxNumberBytes, "0.%.*s%s", -d.exponent - 1, "0000", d.digits);
  }
  const int whole = d.exponent + 1;
  if (d.n <= whole) {
    return std::snprintf(out, kMaxNumberBytes, "%s%.*s.0", d.digits, whole - d.n,
                         "0000000000000000");
  }
  return std::snprintf(out, kMaxNumberBytes, "%.*s.%s", whole, d.digits, d.digits + whole);
}

// The locale's decimal point.
size_t decimalPoint(char* out) {
  char half[16] = "";
  const int n = std::snprintf(half, sizeof half, "%.1f", 0.5);
  const size_t bytes = n > 2 ? static_cast<size_t>(n) - 2 : 0;
  std::memcpy(out, half + 1, bytes);
  return bytes;
}

bool isNumberByte(char c) {
  return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' || c == 'e' || c == 'E';
}

bool isWord(const char* text, size_t bytes, const char* word) {
  for (size_t i = 0; i < bytes; ++i) {
    const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] + 32) : text[i];
    if (c != word[i]) {
      return false;
    }
  }
  return bytes > 0 && word[bytes] == '\0';
}

}  // namespace

size_t writeFloat(double value, char* out) {
  if (std::isnan(value) || std::isinf(value)) {
    std::strcpy(out, std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    return std::strlen(out);
  }
  size_t n = 0;
  if (std::signbit(value)) {
    out[n++] = '-';
    value = -value;
  }
  return n + static_cast<size_t>(layOut(shortest(value), out + n));
}

size_t writeInteger(int64_t value, char* out) {
  return static_cast<size_t>(std::snprintf(out, kMaxNumberBytes, "%" PRId64, value));
}

bool readInteger(const char* text, size_t bytes, uint32_t base, int64_t* value) {
  const bool negative = bytes > 0 && text[0] == '-';
  const size_t begin = negative || (bytes > 0 && text[0] == '+') ? 1 : 0;
  uint64_t all = 0;
  for (size_t i = begin; i < bytes; ++i) {
    const char c = text[i];
    const uint32_t digit = c >= '0' && c <= '9'   ? static_cast<uint32_t>(c - '0')
                           : c >= 'a' && c <= 'z' ? static_cast<uint32_t>(c - 'a' + 10)
                           : c >= 'A' && c <= 'Z' ? static_cast<uint32_t>(c - 'A' + 10)
                                                  : 99;
    if (digit >= base || all > (static_cast<uint64_t>(INT64_MAX) - digit) / base) {
      return false;
    }
    all = all * base + digit;
  }
  *value = negative ? -static_cast<int64_t>(all) : static_cast<int64_t>(all);
  return bytes > begin;
}

bool readFloat(const char* text, size_t bytes, double* value) {
  const size_t sign = bytes > 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  if (isWord(text + sign, bytes - sign, "inf") || isWord(text + sign, bytes - sign, "infinity")) {
    *value = text[0] == '-' ? -HUGE_VAL : HUGE_VAL;
    return true;
  }
  if (isWord(text + sign, bytes - sign, "nan")) {
    *value = std::nan("");
    return true;
  }
  char copy[kMaxReadBytes + 16] = "";
  size_t n = 0;
  for (size_t i = 0; i < bytes; ++i) {
    if (!isNumberByte(text[i]) || n >= kMaxReadBytes) {
      return false;
    }
    if (text[i] == '.') {
      n += decimalPoint(copy + n);
    } else {
      copy[n++] = text[i];
    }
  }
  char* end = nullptr;
  *value = std::strtod(copy, &end);
  return n > 0 && end == copy + n;
}

Value numberOf(const JsonValue& number) {
  int64_t integer = 0;
  if (number.isInteger() && readInteger(number.text().data, number.text().bytes, 10, &integer)) {
    return Value::integer(integer);
  }
  double real = 0;
  if (!number.isInteger() && readFloat(number.text().data, number.text().bytes, &real)) {
    return Value::real(real);
  }
  return Value::asWritten(&number.text());
}

}  // namespace oriel_internal::jinja
