// Repacked weights against dequantising the file's blocks, written here from the format's definition.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "base/half.h"
#include "plan/weight_layout.h"

namespace oriel {
namespace {

/// Some rows as a file has them, and the values they stand for.
struct FileRows {
  std::vector<uint8_t> bytes;
  std::vector<float> values;
};

template <typename T>
void put(std::vector<uint8_t>* bytes, T value) {
  const size_t at = bytes->size();
  bytes->resize(at + sizeof(T));
  std::memcpy(bytes->data() + at, &value, sizeof(T));
}

// A half without NaN or infinity.
uint16_t randomHalf(std::mt19937* random) {
  uint16_t half = 0;
  do {
    half = static_cast<uint16_t>((*random)());
  } while ((half & 0x7c00) == 0x7c00);
  return half;
}

FileRows makeRows(TensorType type, uint32_t rows, uint32_t cols, std::mt19937* random) {
  FileRows made;
  if (type == TensorType::kQ8_0 || type == TensorType::kQ4_0) {
    for (uint32_t b = 0; b < rows * cols / 32; ++b) {
      const uint16_t scale = randomHalf(random);
      put(&made.bytes, scale);
      const float d = halfToFloat(scale);
      if (type == TensorType::kQ8_0) {
        for (int i = 0; i < 32; ++i) {
          const int8_t q = static_cast<int8_t>((*random)());
          put(&made.bytes, q);
          made.values.push_back(d * q);
        }
        continue;
      }
      uint8_t nibbles[16];
      for (uint8_t& pair : nibbles) {
        pair = static_cast<uint8_t>((*random)());
        put(&made.bytes, pair);
      }
      for (int i = 0; i < 32; ++i) {
        const int q = i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
        made.values.push_back(d * static_cast<float>(q - 8));
      }
    }
    return made;
  }
  for (uint32_t i = 0; i < rows * cols; ++i) {
    if (type == TensorType::kF32) {
      const float value = std::uniform_real_distribution<float>(-4, 4)(*random);
      put(&made.bytes, value);
      made.values.push_back(value);
    } else {
      const uint16_t half = randomHalf(random);
      put(&made.bytes, half);
      made.values.push_back(type == TensorType::kF16 ? halfToFloat(half) : bfloat16ToFloat(half));
    }
  }
  return made;
}

/// A slice on the device, read as shaders/shared/layout.h describes it.
struct Slice {
  WeightType type;
  WeightGeometry geometry;
  std::vector<uint32_t> words;
  std::vector<uint16_t> scales;

  float at(uint32_t row, uint32_t col) const {
    const uint32_t* w = words.data() + row * geometry.words_per_row;
    const auto scale = [&] {
      return halfToFloat(scales[row * geometry.blocks_per_row + col / kQuantBlock]);
    };
    switch (type) {
      case WeightType::kF32: {
        float value;
        std::memcpy(&value, w + col, sizeof(value));
        return value;
      }
      case WeightType::kF16:
        return halfToFloat(static_cast<uint16_t>(w[col / 2] >> (col % 2 * 16)));
      case WeightType::kBf16:
        return bfloat16ToFloat(static_cast<uint16_t>(w[col / 2] >> (col % 2 * 16)));
      case WeightType::kQ8_0:
        return scale() * static_cast<int8_t>(w[col / 4] >> (col % 4 * 8));
      case WeightType::kQ4_0:
        return scale() * static_cast<float>(static_cast<int>(w[col / 8] >> (col % 8 * 4) & 15) - 8);
    }
    return 0;
  }
};

Slice repack(TensorType file_type, WeightType type, const FileRows& file, uint32_t rows,
             uint32_t cols) {
  Slice slice;
  slice.type = type;
  slice.geometry = weightGeometry(type, cols);
  // Filled with ones, so that padding left as it was shows; a word more, so that one too far does.
  slice.words.assign(rows * slice.geometry.words_per_row + 1, 0xffffffffu);
  slice.scales.assign(rows * slice.geometry.blocks_per_row + 1, 0xffffu);
  const uint32_t file_number = static_cast<uint32_t>(file_type);
  EXPECT_EQ(file.bytes.size(), rows * fileRowBytes(file_number, cols));
  repackQuants(file_number, type, file.bytes.data(), rows, cols, slice.words.data());
  if (slice.geometry.blocks_per_row != 0) {
    repackScales(file_number, file.bytes.data(), rows, cols, slice.scales.data());
  }
  EXPECT_EQ(0xffffffffu, slice.words.back());
  EXPECT_EQ(0xffffu, slice.scales.back());
  return slice;
}

void expectLossless(TensorType file_type, WeightType type, uint32_t rows, uint32_t cols) {
  std::mt19937 random(rows * 1000 + cols);
  const FileRows file = makeRows(file_type, rows, cols, &random);
  const Slice slice = repack(file_type, type, file, rows, cols);
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t c = 0; c < cols; ++c) {
      ASSERT_EQ(file.values[r * cols + c], slice.at(r, c)) << "row " << r << " column " << c;
    }
    for (uint32_t c = cols; c < paddedCols(cols); ++c) {
      ASSERT_EQ(0.0f, slice.at(r, c)) << "padding of row " << r << " at " << c;
    }
  }
}

TEST(WeightLayout, floats_survive_whatever_the_number_of_columns) {
  for (const uint32_t cols : {1u, 2u, 3u, 7u, 8u, 9u, 31u, 33u, 64u, 191u}) {
    SCOPED_TRACE(cols);
    expectLossless(TensorType::kF32, WeightType::kF32, 5, cols);
    expectLossless(TensorType::kF16, WeightType::kF16, 5, cols);
    expectLossless(TensorType::kBf16, WeightType::kBf16, 5, cols);
  }
}

TEST(WeightLayout, vectors_of_any_float_type_become_f32) {
  for (const uint32_t cols : {1u, 13u, 64u}) {
    expectLossless(TensorType::kF16, WeightType::kF32, 1, cols);
    expectLossless(TensorType::kBf16, WeightType::kF32, 1, cols);
  }
}

TEST(WeightLayout, quantised_blocks_survive) {
  for (const uint32_t cols : {32u, 64u, 96u, 416u}) {
    for (const uint32_t rows : {1u, 2u, 5u}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
      expectLossless(TensorType::kQ8_0, WeightType::kQ8_0, rows, cols);
      expectLossless(TensorType::kQ4_0, WeightType::kQ4_0, rows, cols);
    }
  }
}

TEST(WeightLayout, a_slice_has_room_for_exactly_its_quants_and_scales) {
  // Three rows of three blocks: nine f16 scales need five words.
  const WeightGeometry q8 = weightGeometry(WeightType::kQ8_0, 96);
  EXPECT_EQ(24u, q8.words_per_row);
  EXPECT_EQ(3u, q8.blocks_per_row);
  EXPECT_EQ(4u * (3 * 24 + 5), q8.sliceBytes(3));
  const WeightGeometry q4 = weightGeometry(WeightType::kQ4_0, 96);
  EXPECT_EQ(4u * (3 * 12 + 5), q4.sliceBytes(3));
  EXPECT_EQ(4u * 3 * 16, weightGeometry(WeightType::kF32, 9).sliceBytes(3));
  EXPECT_EQ(4u * 3 * 8, weightGeometry(WeightType::kF16, 9).sliceBytes(3));
}

TEST(WeightLayout, the_largest_slice_fits_a_binding_and_one_step_more_does_not) {
  for (const WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kQ8_0,
                                WeightType::kQ4_0}) {
    for (const uint32_t cols : {64u, 4096u, 16384u}) {
      const WeightGeometry geometry = weightGeometry(type, cols);
      const uint32_t rows = maxSliceRows(geometry);
      EXPECT_GT(rows, 0u);
      EXPECT_EQ(0u, rows % 16);
      EXPECT_LE(geometry.sliceBytes(rows), kMaxBindingBytes);
      EXPECT_GT(geometry.sliceBytes(uint64_t{rows} + 16), kMaxBindingBytes);
    }
  }
}

TEST(WeightLayout, types_of_files_map_to_types_of_the_device) {
  WeightType type = WeightType::kF32;
  EXPECT_TRUE(weightTypeOf(static_cast<uint32_t>(TensorType::kBf16), &type));
  EXPECT_EQ(WeightType::kBf16, type);
  EXPECT_FALSE(weightTypeOf(4711, &type));
}

}  // namespace
}  // namespace oriel
