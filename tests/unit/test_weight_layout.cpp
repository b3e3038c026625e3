// Repacked weights against dequantising the file's blocks, written here from the format's definition.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "base/half.h"
#include "plan/repack.h"
#include "plan/weight_layout.h"

namespace oriel {
namespace {

constexpr uint32_t kCanary = 0xffffffffu;

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

/// Groups on the device, read as shaders/shared/layout.h describes them.
struct Groups {
  WeightType type;
  WeightGeometry geometry;
  std::vector<uint32_t> words;

  uint32_t quant(uint32_t row, uint32_t word) const {
    return words[row / 16 * geometry.groupWords() + 4 * (word / 4 * 16 + row % 16) + word % 4];
  }
  uint32_t side(uint32_t row, uint32_t word) const {
    return words[row / 16 * geometry.groupWords() + 64 * geometry.quads + word * 16 + row % 16];
  }
  uint16_t half(uint32_t word, uint32_t which) const {
    return static_cast<uint16_t>(word >> (16 * which));
  }

  float at(uint32_t row, uint32_t col) const {
    const uint32_t unit = col / 32;
    const uint32_t i = col % 32;
    const auto scale = [&] { return halfToFloat(half(side(row, unit / 2), unit % 2)); };
    switch (type) {
      case WeightType::kF32:
        return bitsToFloat(quant(row, col));
      case WeightType::kF16:
        return halfToFloat(half(quant(row, col / 2), col % 2));
      case WeightType::kBf16:
        return bfloat16ToFloat(half(quant(row, col / 2), col % 2));
      case WeightType::kQ8_0:
        return scale() * static_cast<int8_t>(quant(row, col / 4) >> (col % 4 * 8));
      case WeightType::kQ4_0: {
        const uint32_t pair = quant(row, 4 * unit + i % 16 / 4) >> (8 * (i % 4)) & 0xff;
        return scale() * static_cast<float>(static_cast<int>(i < 16 ? pair & 15 : pair >> 4) - 8);
      }
    }
    return 0;
  }
};

/// `rows` rows of the file put at `first_row`, with canaries everywhere else.
Groups repack(WeightType type, const FileRows& file, uint32_t rows, uint32_t cols,
              uint32_t first_row) {
  Groups groups;
  groups.type = type;
  groups.geometry = weightGeometry(type, cols);
  groups.words.assign(groups.geometry.sliceBytes(first_row + rows) / 4 + 1, kCanary);
  EXPECT_EQ(file.bytes.size(), rows * fileRowBytes(fileTypeOf(type), cols));
  repackRows(type, file.bytes.data(), rows, cols, first_row, groups.words.data());
  EXPECT_EQ(kCanary, groups.words.back());
  return groups;
}

void expectCanaries(const Groups& groups, uint32_t begin, uint32_t end) {
  for (uint32_t r = begin; r < end; ++r) {
    for (uint32_t w = 0; w < 4 * groups.geometry.quads; ++w) {
      ASSERT_EQ(kCanary, groups.quant(r, w)) << "row " << r;
    }
    for (uint32_t w = 0; w < groups.geometry.side; ++w) {
      ASSERT_EQ(kCanary, groups.side(r, w)) << "row " << r;
    }
  }
}

void expectLossless(WeightType type, uint32_t rows, uint32_t cols, uint32_t first_row) {
  SCOPED_TRACE(std::string(weightTypeName(type)) + " " + std::to_string(rows) + " x " +
               std::to_string(cols) + " at " + std::to_string(first_row));
  std::mt19937 random(rows * 1000 + cols);
  const FileRows file =
      makeRows(static_cast<TensorType>(fileTypeOf(type)), rows, cols, &random);
  Groups groups = repack(type, file, rows, cols, first_row);
  const uint32_t end = first_row + rows;
  const uint32_t filled = (end + 15) / 16 * 16;
  expectCanaries(groups, 0, first_row);
  expectCanaries(groups, end, filled);
  clearRows(type, filled - end, cols, end, groups.words.data());
  clearRows(type, first_row, cols, 0, groups.words.data());
  for (uint32_t r = 0; r < filled; ++r) {
    const bool padding_row = r < first_row || r >= end;
    for (uint32_t c = 0; c < paddedCols(cols); ++c) {
      const float want =
          padding_row || c >= cols ? 0.0f : file.values[(r - first_row) * cols + c];
      ASSERT_EQ(want, groups.at(r, c)) << "row " << r << " column " << c;
    }
  }
}

constexpr WeightType kFloatTypes[] = {WeightType::kF32, WeightType::kF16, WeightType::kBf16};
constexpr WeightType kBlockTypes[] = {WeightType::kQ8_0, WeightType::kQ4_0};

TEST(WeightLayout, floats_survive_whatever_the_number_of_columns) {
  for (const WeightType type : kFloatTypes) {
    for (const uint32_t cols : {1u, 2u, 3u, 7u, 8u, 9u, 31u, 33u, 64u, 191u}) {
      expectLossless(type, 5, cols, 0);
    }
  }
}

TEST(WeightLayout, blocks_survive_whatever_their_number) {
  for (const WeightType type : kBlockTypes) {
    for (const uint32_t blocks : {1u, 2u, 3u, 13u}) {
      expectLossless(type, 5, 32 * blocks, 0);
    }
  }
}

TEST(WeightLayout, rows_begin_anywhere_in_a_group_and_touch_no_other_row) {
  for (uint32_t t = 0; t < kWeightTypes; ++t) {
    for (const uint32_t first_row : {1u, 8u, 15u, 16u, 24u}) {
      for (const uint32_t rows : {1u, 8u, 15u, 16u, 24u, 50u}) {
        expectLossless(static_cast<WeightType>(t), rows, 96, first_row);
      }
    }
  }
}

TEST(WeightLayout, vectors_of_any_float_type_become_f32) {
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBf16}) {
    for (const uint32_t cols : {1u, 13u, 64u}) {
      std::mt19937 random(cols);
      const FileRows file = makeRows(type, 1, cols, &random);
      std::vector<float> values(vectorBytes(cols) / 4 + 1, 7.0f);
      repackVector(static_cast<uint32_t>(type), file.bytes.data(), cols, values.data());
      for (uint32_t c = 0; c + 1 < values.size(); ++c) {
        EXPECT_EQ(c < cols ? file.values[c] : 0.0f, values[c]);
      }
      EXPECT_EQ(7.0f, values.back());
    }
  }
}

TEST(WeightLayout, a_slice_is_whole_groups_of_rows) {
  // Three blocks a row: two words of scales.
  const WeightGeometry q8 = weightGeometry(WeightType::kQ8_0, 96);
  EXPECT_EQ(16u * 4 * (24 + 2), q8.sliceBytes(3));
  EXPECT_EQ(2u * 16 * 4 * (24 + 2), q8.sliceBytes(17));
  const WeightGeometry q4 = weightGeometry(WeightType::kQ4_0, 96);
  EXPECT_EQ(16u * 4 * (12 + 2), q4.sliceBytes(16));
  EXPECT_EQ(16u * 4 * 32, weightGeometry(WeightType::kF32, 9).sliceBytes(3));
  EXPECT_EQ(16u * 4 * 16, weightGeometry(WeightType::kF16, 9).sliceBytes(3));
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
