// The low-bit cache formats in scalar code: what the append kernels do, to the same rounding.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/half.h"
#include "kv/cache_layout.h"

namespace oriel {

/// Multiplies blocks of `block` values (a power of two) by the normalised Walsh-Hadamard matrix, in
/// place. Its own inverse. Keys and queries are rotated alike, which spreads outlier channels over all
/// of them and leaves every q . k as it was.
inline void hadamard(float* values, uint32_t n, uint32_t block) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(block));
  for (uint32_t half = 1; half < block; half *= 2) {
    for (uint32_t i = 0; i < n; ++i) {
      if ((i & half) == 0) {
        const float a = values[i];
        const float b = values[i + half];
        values[i] = a + b;
        values[i + half] = a - b;
      }
    }
  }
  for (uint32_t i = 0; i < n; ++i) {
    values[i] *= scale;
  }
}

/// What a stored code stands for, before its scale: int8 in two's complement, int4 as code - 8.
inline float kvCodeValue(KvFormat format, uint32_t code) {
  return format == KvFormat::kInt8 ? static_cast<float>(static_cast<int8_t>(code))
                                   : static_cast<float>(static_cast<int32_t>(code) - 8);
}

/// The nearest code for value / scale, ties to even.
inline uint8_t kvCode(KvFormat format, float scaled) {
  const float most = format == KvFormat::kInt8 ? 127.0f : 7.0f;
  const float least = format == KvFormat::kInt8 ? -127.0f : -8.0f;
  const int32_t code = static_cast<int32_t>(std::nearbyint(std::fmin(std::fmax(scaled, least), most)));
  return static_cast<uint8_t>(format == KvFormat::kInt8 ? code & 0xff : code + 8);
}

/// Codes of n <= kKvGroup values; returns the bits of their f16 scale. The scale is rounded before it
/// is used, so codes are the nearest for the scale that will be read back.
inline uint16_t quantiseGroup(KvFormat format, const float* values, uint32_t n, uint8_t* codes) {
  float extreme = 0;
  for (uint32_t i = 0; i < n; ++i) {
    extreme = std::fabs(values[i]) > std::fabs(extreme) ? values[i] : extreme;
  }
  const float steps = format == KvFormat::kInt8 ? 127.0f : -8.0f;
  const uint16_t bits = floatToHalf((format == KvFormat::kInt8 ? std::fabs(extreme) : extreme) / steps);
  const float scale = halfToFloat(bits);
  const float inverse = scale != 0 ? 1.0f / scale : 0;
  for (uint32_t i = 0; i < n; ++i) {
    codes[i] = kvCode(format, values[i] * inverse);
  }
  return bits;
}

}  // namespace oriel
