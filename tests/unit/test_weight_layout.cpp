// Repacked weights, read back, against dequantised file blocks by definition.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "base/half.h"
#include "exec/reference_weights.h"
#include "plan/repack.h"
#include "plan/weight_layout.h"
#include "support/file_blocks.h"

namespace oriel_internal::test_weight_layout {
namespace {

using test::blockValues;
using test::randomBlocks;
using test::randomHalf;
using test::rowValue;

constexpr uint32_t kCanary = 0xffffffffu;

std::vector<WeightType> allTypes() {
  std::vector<WeightType> types;
  for (uint32_t i = 0; i < kWeightTypes; ++i) {
    types.push_back(static_cast<WeightType>(i));
  }
  return types;
}

/// Device groups: rows as seen by the reference executor, words at the places of shared/layout.h.
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
  float at(uint32_t row, uint32_t col) const {
    const WeightRows rows = {type, words.data(), geometry.groupWords(), geometry.sideWord()};
    float unit[kUnit];
    rows.unpack(row, col / kUnit, unit);
    return unit[col % kUnit];
  }
};

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
  const TensorType file_type = static_cast<TensorType>(fileTypeOf(type));
  const std::vector<uint8_t> file = randomBlocks(file_type, rows * cols / blockValues(file_type),
                                                 &random, [&] { return randomHalf(&random); });
  const uint64_t row_bytes = fileRowBytes(fileTypeOf(type), cols);
  ASSERT_EQ(file.size(), rows * row_bytes);
  Groups groups;
  groups.type = type;
  groups.geometry = weightGeometry(type, cols);
  groups.words.assign(groups.geometry.sliceBytes(first_row + rows) / 4 + 1, kCanary);
  repackRows(type, file.data(), rows, cols, first_row, groups.words.data());
  ASSERT_EQ(kCanary, groups.words.back());
  const uint32_t end = first_row + rows;
  const uint32_t filled = (end + 15) / 16 * 16;
  expectCanaries(groups, 0, first_row);
  expectCanaries(groups, end, filled);
  clearRows(type, filled - end, cols, end, groups.words.data());
  clearRows(type, first_row, cols, 0, groups.words.data());
  for (uint32_t r = 0; r < filled; ++r) {
    const bool padding_row = r < first_row || r >= end;
    for (uint32_t c = 0; c < paddedCols(cols); ++c) {
      if (padding_row || c >= cols) {
        ASSERT_EQ(0.0f, groups.at(r, c)) << "row " << r << " column " << c;
        continue;
      }
      const float want = rowValue(file_type, file.data() + (r - first_row) * row_bytes, c);
      ASSERT_EQ(floatToBits(want), floatToBits(groups.at(r, c))) << "row " << r << " column " << c;
    }
  }
}

TEST(WeightLayout, floats_survive_whatever_the_number_of_columns) {
  for (const WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kBf16}) {
    for (const uint32_t cols : {1u, 2u, 3u, 7u, 8u, 9u, 31u, 33u, 64u, 191u}) {
      expectLossless(type, 5, cols, 0);
    }
  }
}

TEST(WeightLayout, blocks_survive_whatever_their_number) {
  for (const WeightType type : allTypes()) {
    for (const uint32_t blocks : {1u, 2u, 3u, 13u}) {
      expectLossless(type, 5, blockValues(static_cast<TensorType>(fileTypeOf(type))) * blocks, 0);
    }
  }
}

TEST(WeightLayout, rows_begin_anywhere_in_a_group_and_touch_no_other_row) {
  for (const WeightType type : allTypes()) {
    for (const uint32_t first_row : {1u, 8u, 15u, 16u, 24u}) {
      for (const uint32_t rows : {1u, 8u, 15u, 16u, 24u, 50u}) {
        expectLossless(type, rows, 256, first_row);
      }
    }
  }
}

TEST(WeightLayout, nibbles_of_4_bits_stay_the_bytes_of_the_file) {
  std::mt19937 random(5);
  const std::vector<uint8_t> file =
      randomBlocks(TensorType::kQ4_0, 2 * 20, &random, [&] { return randomHalf(&random); });
  const WeightGeometry geometry = weightGeometry(WeightType::kQ4_0, 64);
  std::vector<uint32_t> words(geometry.sliceBytes(20) / 4);
  repackRows(WeightType::kQ4_0, file.data(), 20, 64, 0, words.data());
  // Row 18 is row 2 of the second group, which begins after 16 rows of 2 quads and 1 side word.
  const uint32_t* group = words.data() + 16 * 9;
  for (uint32_t unit = 0; unit < 2; ++unit) {
    const uint8_t* block = file.data() + (18 * 2 + unit) * 18;
    EXPECT_EQ(0, std::memcmp(block + 2, group + 4 * (unit * 16 + 2), 16));
    EXPECT_EQ(block[0] | block[1] << 8, group[16 * 8 + 2] >> (16 * unit) & 0xffff);
  }
}

TEST(WeightLayout, mxfp4_has_every_power_of_two) {
  std::vector<uint8_t> file;
  for (uint32_t e = 0; e < 256; ++e) {
    file.push_back(static_cast<uint8_t>(e));
    for (uint32_t i = 0; i < 16; ++i) {
      file.push_back(static_cast<uint8_t>(i | (15 - i) << 4));
    }
  }
  Groups groups;
  groups.type = WeightType::kMxfp4;
  groups.geometry = weightGeometry(groups.type, 256 * 32);
  groups.words.resize(groups.geometry.sliceBytes(1) / 4);
  repackRows(groups.type, file.data(), 1, 256 * 32, 0, groups.words.data());
  for (uint32_t c = 0; c < 256 * 32; ++c) {
    ASSERT_EQ(floatToBits(rowValue(TensorType::kMxfp4, file.data(), c)),
              floatToBits(groups.at(0, c)))
        << "2^" << c / 32 << ", value " << c % 32;
  }
}

// Growth on the device compared with the file, for every type: at most 5.5%, for Q3_K. TQ1_0 and TQ2_0 are packed as
// Q2_0.
TEST(WeightLayout, a_slice_is_little_larger_than_the_file) {
  for (const WeightType type : allTypes()) {
    const uint64_t device = weightGeometry(type, 2048).sliceBytes(2048);
    const bool ternary = type == WeightType::kTq1_0 || type == WeightType::kTq2_0;
    const TensorType packed =
        ternary ? TensorType::kQ2_0 : static_cast<TensorType>(fileTypeOf(type));
    const uint64_t file = 2048 * fileRowBytes(static_cast<uint32_t>(packed), 2048);
    EXPECT_GE(device, file) << weightTypeName(type);
    EXPECT_LE(device * 1000, file * 1055) << weightTypeName(type);
  }
}

TEST(WeightLayout, vectors_of_any_float_type_become_f32) {
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBf16}) {
    for (const uint32_t cols : {1u, 13u, 64u}) {
      std::mt19937 random(cols);
      const std::vector<uint8_t> file =
          randomBlocks(type, cols, &random, [&] { return randomHalf(&random); });
      std::vector<float> values(vectorBytes(cols) / 4 + 1, 7.0f);
      repackVector(static_cast<uint32_t>(type), file.data(), cols, values.data());
      for (uint32_t c = 0; c + 1 < values.size(); ++c) {
        EXPECT_EQ(c < cols ? rowValue(type, file.data(), c) : 0.0f, values[c]);
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
  for (const WeightType type : allTypes()) {
    for (const uint32_t cols : {256u, 4096u, 16384u}) {
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
}  // namespace oriel_internal::test_weight_layout
