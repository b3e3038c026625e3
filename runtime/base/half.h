// IEEE 754 half floats and bfloat16, converted in portable code (round to nearest, ties to even).
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace oriel_internal {

inline float bitsToFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline uint32_t floatToBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float halfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) {
    return bitsToFloat(sign | 0x7f800000u | (mantissa << 13));
  }
  if (exponent != 0) {
    return bitsToFloat(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }
  // Zero and subnormals: mantissa * 2^-24, exact in float.
  const float magnitude = static_cast<float>(mantissa) * 5.9604644775390625e-8f;
  return sign != 0 ? -magnitude : magnitude;
}

inline uint16_t floatToHalf(float value) {
  const uint32_t bits = floatToBits(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u);  // NaN
  }
  if (magnitude >= 0x477ff000u) {
    return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  }
  if (magnitude < 0x38800000u) {
    // Below the smallest normal half: adding 0.5 leaves the rounded 2^-24 steps in the low bits.
    const float shifted = bitsToFloat(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (floatToBits(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

inline float bfloat16ToFloat(uint16_t value) {
  return bitsToFloat(static_cast<uint32_t>(value) << 16);
}

// Decimal numbers as text, independent of the locale.

/// Parses digits with a point and an exponent ("-1.5e-3") to about 16 digits. *end is the end of the number. False: no
/// digits.
inline bool readDecimal(const char* text, const char** end, double* value) {
  const bool minus = *text == '-';
  text += minus ? 1 : 0;
  double digits = 0;
  int exponent = 0;
  bool any = false;
  bool after_point = false;
  for (; (*text >= '0' && *text <= '9') || (*text == '.' && !after_point); ++text) {
    if (*text == '.') {
      after_point = true;
      continue;
    }
    digits = digits * 10 + (*text - '0');
    exponent -= after_point ? 1 : 0;
    any = true;
  }
  if (any && (*text == 'e' || *text == 'E')) {
    const bool down = text[1] == '-';
    int power = 0;
    for (text += down || text[1] == '+' ? 2 : 1; *text >= '0' && *text <= '9'; ++text) {
      power = power < 1000 ? power * 10 + (*text - '0') : power;
    }
    exponent += down ? -power : power;
  }
  const double scale = std::pow(10.0, exponent < 0 ? -exponent : exponent);
  *value = (minus ? -digits : digits);
  *value = exponent < 0 ? *value / scale : *value * scale;
  *end = text;
  return any;
}

}  // namespace oriel_internal
