// Random inputs for kernels, packed as in shaders/shared/layout.h, with their values in double.
#pragma once

#include <cmath>
#include <vector>

#include "base/half.h"
#include "plan/repack.h"
#include "plan/weight_layout.h"
#include "shaders/shared/layout.h"
#include "support/file_blocks.h"

namespace oriel_internal::test {

/// A mixed counter (SplitMix64): kernel tests draw some hundred million numbers.
class Mixed {
 public:
  using result_type = uint64_t;
  explicit Mixed(uint64_t seed) : at_(seed) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return UINT64_MAX; }
  result_type operator()() {
    uint64_t z = at_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t at_;
};

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  /// Box-Muller, two at a time.
  float normal(float scale = 1.0f) {
    has_other_ = !has_other_;
    if (has_other_) {
      const uint64_t bits = engine_();
      const float radius =
          std::sqrt(-2 * std::log(static_cast<float>((bits >> 40) + 1) * 0x1p-24f));
      const float turn = static_cast<float>(bits & 0xFFFFFF) * (6.2831853f * 0x1p-24f);
      other_ = radius * std::sin(turn);
      return scale * radius * std::cos(turn);
    }
    return scale * other_;
  }
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(engine_() % limit); }
  std::vector<float> normals(size_t count, float scale = 1.0f) {
    std::vector<float> values(count);
    for (float& value : values) {
      value = normal(scale);
    }
    return values;
  }
  Mixed& engine() { return engine_; }

 private:
  Mixed engine_;
  float other_ = 0;
  bool has_other_ = false;
};

/// hadamard() of kv/quantise.h for a row, from the definition: blocks of the largest power of two that divides it, and
/// entry (i, j) of the matrix has the sign of the parity of i & j.
inline std::vector<double> spread(const std::vector<double>& values) {
  const size_t block = values.size() & (~values.size() + 1);
  std::vector<double> signs(block, 1);
  for (size_t i = 1; i < block; ++i) {
    signs[i] = i % 2 != 0 ? -signs[i / 2] : signs[i / 2];
  }
  std::vector<double> out(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double* const in = values.data() + i / block * block;
    const double* const sign = signs.data();
    const size_t row = i % block;
    double sum = 0;
    for (size_t j = 0; j < block; ++j) {
      sum += sign[row & j] * in[j];
    }
    out[i] = sum / std::sqrt(static_cast<double>(block));
  }
  return out;
}

inline uint32_t unitsOf(uint32_t cols) { return (cols + kUnit - 1) / kUnit; }

/// A matrix slice and its values.
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
  /// The whole matrix, with contiguous inputs and outputs.
  MatmulPush product() const {
    MatmulPush push = {};
    push.rows = rows;
    push.units = geometry.units;
    push.group_words = geometry.groupWords();
    push.side_word = geometry.sideWord();
    push.in_stride = geometry.units * kUnit;
    push.out_stride = rows;
    return push;
  }
};

/// Random rows of the type. Blocks are complete, so quants past `cols` are not zero: inputs must be.
inline PackedMatrix randomMatrix(WeightType type, uint32_t rows, uint32_t cols, Random* random) {
  const TensorType file_type = static_cast<TensorType>(fileTypeOf(type));
  const uint32_t whole = (cols + blockValues(file_type) - 1) / blockValues(file_type);
  const uint32_t file_cols = whole * blockValues(file_type);
  uint32_t n = 0;
  const float size = blockValues(file_type) == 1    ? 0.5f
                     : blockValues(file_type) == 32 ? 0.01f
                                                    : 0.0005f;
  const std::vector<uint8_t> file =
      randomBlocks(file_type, size_t{rows} * whole, &random->engine(), [&] {
        // Every third scale is a subnormal half, like small weights.
        const float magnitude =
            (++n % 3 == 0 ? 2e-5f : size) * (0.5f + std::fabs(random->normal()));
        return floatToHalf(n % 5 == 0 ? -magnitude : magnitude);
      });
  PackedMatrix m;
  m.type = type;
  m.rows = rows;
  m.cols = cols;
  m.geometry = weightGeometry(type, file_cols);
  m.words.assign(m.geometry.sliceBytes(rows) / 4, 0);
  repackRows(type, file.data(), rows, file_cols, 0, m.words.data());
  const size_t row_bytes = fileRowBytes(fileTypeOf(type), file_cols);
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t c = 0; c < cols; ++c) {
      m.values.push_back(static_cast<double>(rowValue(file_type, file.data() + r * row_bytes, c)));
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
  repackRows(WeightType::kF32, reinterpret_cast<const uint8_t*>(values.data()), rows, cols, 0,
             m.words.data());
  m.values.assign(values.begin(), values.end());
  return m;
}

/// f16 values, two to a word, and their doubles.
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

/// [tokens][stride] inputs with zero padding (cols up to a multiple of kUnit), as in plans.
inline std::vector<float> paddedRows(uint32_t tokens, uint32_t cols, uint32_t stride,
                                     Random* random) {
  std::vector<float> rows(static_cast<size_t>(tokens) * stride, 0.0f);
  for (uint32_t t = 0; t < tokens; ++t) {
    for (uint32_t c = 0; c < cols; ++c) {
      rows[static_cast<size_t>(t) * stride + c] = random->normal();
    }
  }
  return rows;
}

}  // namespace oriel_internal::test
