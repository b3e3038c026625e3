// Random inputs for kernels, packed as shaders/shared/layout.h says, with their values in double.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "base/half.h"
#include "plan/weight_layout.h"

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
  WeightType type = WeightType::kF32;
  uint32_t rows = 0;
  uint32_t cols = 0;
  WeightGeometry geometry;
  std::vector<uint32_t> words;
  std::vector<double> values;  ///< [rows][cols]

  double at(uint32_t row, uint32_t col) const {
    return values[static_cast<size_t>(row) * cols + col];
  }
  uint32_t& quant(uint32_t row, uint32_t word) {
    return words[row / 16 * geometry.groupWords() + 4 * (word / 4 * 16 + row % 16) + word % 4];
  }
  uint32_t& side(uint32_t row, uint32_t word) {
    return words[row / 16 * geometry.groupWords() + geometry.sideWord() + word * 16 + row % 16];
  }
};

inline PackedMatrix randomMatrix(WeightType type, uint32_t rows, uint32_t cols, Random* random) {
  PackedMatrix m;
  m.type = type;
  m.rows = rows;
  m.cols = cols;
  m.geometry = weightGeometry(type, cols);
  m.words.assign(m.geometry.sliceBytes(rows) / 4, 0);
  m.values.resize(static_cast<size_t>(rows) * cols);
  const bool quantised = type == WeightType::kQ8_0 || type == WeightType::kQ4_0;
  for (uint32_t r = 0; r < rows; ++r) {
    double scale = 1;
    for (uint32_t c = 0; c < unitsOf(cols) * kUnit; ++c) {
      const uint32_t unit = c / kUnit;
      const uint32_t i = c % kUnit;
      if (quantised && i == 0) {
        // Every third scale is a subnormal half, as small weights have.
        const float size = unit % 3 == 2 ? 2e-5f : 0.01f;
        const uint16_t half = floatToHalf(size * (0.5f + std::fabs(random->normal())));
        m.side(r, unit / 2) |= static_cast<uint32_t>(half) << (16 * (unit % 2));
        scale = static_cast<double>(halfToFloat(half));
      }
      const bool padding = c >= cols;
      const float value = padding ? 0.0f : random->normal(0.5f);
      double meaning = 0;
      if (type == WeightType::kF32) {
        m.quant(r, c) = floatToBits(value);
        meaning = static_cast<double>(value);
      } else if (type == WeightType::kF16) {
        const uint16_t half = floatToHalf(value);
        m.quant(r, c / 2) |= static_cast<uint32_t>(half) << (16 * (c % 2));
        meaning = static_cast<double>(halfToFloat(half));
      } else if (type == WeightType::kBf16) {
        const uint16_t half = static_cast<uint16_t>(floatToBits(value) >> 16);
        m.quant(r, c / 2) |= static_cast<uint32_t>(half) << (16 * (c % 2));
        meaning = static_cast<double>(bfloat16ToFloat(half));
      } else if (type == WeightType::kQ8_0) {
        const int quant = padding ? 0 : static_cast<int>(random->below(256)) - 128;
        m.quant(r, c / 4) |= (static_cast<uint32_t>(quant) & 0xffu) << (8 * (c % 4));
        meaning = quant * scale;
      } else {
        const int quant = padding ? 0 : static_cast<int>(random->below(16)) - 8;
        m.quant(r, 4 * unit + i % 16 / 4) |= static_cast<uint32_t>(quant + 8)
                                             << (8 * (i % 4) + 4 * (i / 16));
        meaning = quant * scale;
      }
      if (!padding) {
        m.values[static_cast<size_t>(r) * cols + c] = meaning;
      }
    }
  }
  return m;
}

/// An F32 matrix of these values, [rows][cols].
inline PackedMatrix floatMatrix(uint32_t rows, uint32_t cols, const std::vector<float>& values) {
  PackedMatrix m;
  m.rows = rows;
  m.cols = cols;
  m.geometry = weightGeometry(WeightType::kF32, cols);
  m.words.assign(m.geometry.sliceBytes(rows) / 4, 0);
  m.values.assign(values.begin(), values.end());
  for (uint32_t i = 0; i < rows * cols; ++i) {
    m.quant(i / cols, i % cols) = floatToBits(values[i]);
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
