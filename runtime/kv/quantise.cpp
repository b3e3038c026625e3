// Compiled without fused multiply-add (runtime/CMakeLists.txt), so that codes do not depend on the processor.
#include "kv/quantise.h"

#include <algorithm>

#include "base/half.h"

namespace oriel_internal {
namespace {

// Number of thresholds below `value`; `scale` is positive or zero.
uint8_t int4Code(float value, float scale) {
  uint32_t code = 0;
  for (uint32_t step = kInt4Levels / 2; step != 0; step /= 2) {
    const uint32_t k = code + step;
    const float border = (int4Level(k - 1) + int4Level(k)) * 0.5f;
    code = value > scale * border ? k : code;
  }
  return static_cast<uint8_t>(code);
}

uint16_t quantiseInt8(const float* values, uint32_t n, uint8_t* codes) {
  float most = 0;
  for (uint32_t i = 0; i < n; ++i) {
    most = std::fmax(most, std::fabs(values[i]));
  }
  const uint16_t bits = floatToHalf(most * (1.0f / 127.0f));
  const float scale = halfToFloat(bits);
  const float inverse = scale != 0 ? 1.0f / scale : 0;
  for (uint32_t i = 0; i < n; ++i) {
    const float scaled = std::fmin(std::fmax(values[i] * inverse, -127.0f), 127.0f);
    codes[i] = static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(scaled)) & 0xff);
  }
  return bits;
}

uint16_t quantiseInt4(const float* values, uint32_t n, uint8_t* codes) {
  float extreme = 0;
  for (uint32_t i = 0; i < n; ++i) {
    extreme = std::fabs(values[i]) > std::fabs(extreme) ? values[i] : extreme;
  }
  uint16_t best_bits = 0;
  float best_error = INFINITY;
  for (const float candidate : kInt4Candidate) {
    const uint16_t bits = floatToHalf(extreme * (candidate * (1.0f / 2048.0f)));
    const float scale = halfToFloat(bits);
    float error = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint8_t code = int4Code(scale < 0 ? -values[i] : values[i], std::fabs(scale));
      const float difference = values[i] - scale * int4Level(code);
      error += difference * difference;
    }
    if (error < best_error) {
      best_error = error;
      best_bits = bits;
    }
  }
  const float scale = halfToFloat(best_bits);
  for (uint32_t i = 0; i < n; ++i) {
    codes[i] = int4Code(scale < 0 ? -values[i] : values[i], std::fabs(scale));
  }
  return best_bits;
}

}  // namespace

void hadamard(float* values, uint32_t n, uint32_t block) {
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
  const float scale = 1.0f / std::sqrt(static_cast<float>(block));
  for (uint32_t i = 0; i < n; ++i) {
    values[i] *= scale;
  }
}

uint16_t quantiseGroup(KvFormat format, const float* values, uint32_t n, uint8_t* codes) {
  return format == KvFormat::kInt8 ? quantiseInt8(values, n, codes)
                                   : quantiseInt4(values, n, codes);
}

void loadVector(KvFormat format, const uint8_t* codes, const uint8_t* scales, uint32_t n,
                float* values) {
  const auto half = [](const uint8_t* at) {
    return halfToFloat(static_cast<uint16_t>(at[0] | at[1] << 8));
  };
  if (format == KvFormat::kF16) {
    for (uint32_t i = 0; i < n; ++i) {
      values[i] = half(codes + 2 * i);
    }
    return;
  }
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t code =
        format == KvFormat::kInt8 ? codes[i] : codes[i / 2] >> (4 * (i % 2)) & 0xfu;
    values[i] = half(scales + 2 * (i / kKvGroup)) * kvCodeValue(format, code);
  }
}

void storeVector(KvFormat format, const float* values, uint32_t n, uint8_t* codes,
                 uint8_t* scales) {
  const auto put = [](uint16_t half, uint8_t* at) {
    at[0] = static_cast<uint8_t>(half);
    at[1] = static_cast<uint8_t>(half >> 8);
  };
  if (format == KvFormat::kF16) {
    for (uint32_t i = 0; i < n; ++i) {
      put(floatToHalf(values[i]), codes + 2 * i);
    }
    return;
  }
  for (uint32_t first = 0; first < n; first += kKvGroup) {
    const uint32_t count = std::min(kKvGroup, n - first);
    uint8_t of_group[kKvGroup];
    put(quantiseGroup(format, values + first, count, of_group), scales + 2 * (first / kKvGroup));
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t place = first + i;
      if (format == KvFormat::kInt8) {
        codes[place] = of_group[i];
      } else {
        codes[place / 2] =
            static_cast<uint8_t>(codes[place / 2] | of_group[i] << (4 * (place % 2)));
      }
    }
  }
}

}  // namespace oriel_internal
