// Random inputs for kernels, packed as shaders/shared/layout.h says, with their values in double.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "base/half.h"
#include "plan/plan.h"

namespace oriel::test {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  float normal(float scale = 1.0f) { return std::normal_distribution<float>(0, scale)(engine_); }
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(engine_() % limit); }
  std::vector<float> normals(size_t count, float scale = 1.0f) {
    std::vector<float> values(count);
    for (float& value : values) {
      value = normal(scale);
    }
    return values;
  }

 private:
  std::mt19937_64 engine_;
};

inline uint32_t unitsOf(uint32_t cols) { return (cols + kUnit - 1) / kUnit; }

/// A matrix slice and what it means.
struct PackedMatrix {
  uint32_t rows = 0;
  uint32_t cols = 0;
  uint32_t words_per_row = 0;
  uint32_t blocks_per_row = 0;
  uint32_t scales_word = 0;
  std::vector<uint32_t> words;
  std::vector<double> values;  ///< [rows][cols]

  double at(uint32_t row, uint32_t col) const {
    return values[static_cast<size_t>(row) * cols + col];
  }
};

inline PackedMatrix randomMatrix(WeightType type, uint32_t rows, uint32_t cols, Random* random) {
  PackedMatrix m;
  m.rows = rows;
  m.cols = cols;
  const uint32_t padded = unitsOf(cols) * kUnit;
  const bool quantised = type == WeightType::kQ8_0 || type == WeightType::kQ4_0;
  const uint32_t bits = type == WeightType::kF32    ? 32
                        : type == WeightType::kQ8_0 ? 8
                        : type == WeightType::kQ4_0 ? 4
                                                    : 16;
  m.words_per_row = padded * bits / 32;
  m.blocks_per_row = quantised ? (padded + kQuantBlock - 1) / kQuantBlock : 0;
  m.scales_word = rows * m.words_per_row;
  m.words.assign(m.scales_word + (rows * m.blocks_per_row + 1) / 2, 0);
  m.values.resize(static_cast<size_t>(rows) * cols);
  for (uint32_t r = 0; r < rows; ++r) {
    std::vector<double> scales(m.blocks_per_row);
    for (uint32_t b = 0; b < m.blocks_per_row; ++b) {
      // Every third scale is a subnormal half, as small weights have.
      const float size = b % 3 == 2 ? 2e-5f : 0.01f;
      const uint16_t half = floatToHalf(size * (0.5f + std::fabs(random->normal())));
      const uint32_t index = r * m.blocks_per_row + b;
      m.words[m.scales_word + index / 2] |= static_cast<uint32_t>(half) << (16 * (index % 2));
      scales[b] = static_cast<double>(halfToFloat(half));
    }
    for (uint32_t c = 0; c < padded; ++c) {
      const bool padding = c >= cols;
      const float value = padding ? 0.0f : random->normal(0.5f);
      uint32_t packed = 0;
      double meaning = 0;
      if (type == WeightType::kF32) {
        packed = floatToBits(value);
        meaning = static_cast<double>(value);
      } else if (type == WeightType::kF16) {
        packed = floatToHalf(value);
        meaning = static_cast<double>(halfToFloat(static_cast<uint16_t>(packed)));
      } else if (type == WeightType::kBf16) {
        packed = floatToBits(value) >> 16;
        meaning = static_cast<double>(bfloat16ToFloat(static_cast<uint16_t>(packed)));
      } else if (type == WeightType::kQ8_0) {
        const int quant = padding ? 0 : static_cast<int>(random->below(256)) - 128;
        packed = static_cast<uint32_t>(quant) & 0xffu;
        meaning = quant * scales[c / kQuantBlock];
      } else {
        const int quant = padding ? 0 : static_cast<int>(random->below(16)) - 8;
        packed = static_cast<uint32_t>(quant + 8);
        meaning = quant * scales[c / kQuantBlock];
      }
      const uint32_t per_word = 32 / bits;
      m.words[r * m.words_per_row + c / per_word] |= packed << (bits * (c % per_word) % 32);
      if (!padding) {
        m.values[static_cast<size_t>(r) * cols + c] = meaning;
      }
    }
  }
  return m;
}

/// f16 values, two to a word, and what they mean.
struct PackedHalves {
  std::vector<uint32_t> words;
  std::vector<double> values;
};

inline PackedHalves packHalves(const std::vector<float>& values) {
  PackedHalves packed;
  packed.words.assign((values.size() + 1) / 2, 0);
  packed.values.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half = floatToHalf(values[i]);
    packed.words[i / 2] |= static_cast<uint32_t>(half) << (16 * (i % 2));
    packed.values[i] = static_cast<double>(halfToFloat(half));
  }
  return packed;
}

}  // namespace oriel::test
