#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/half.h"
#include "exec/host_executor.h"
#include "kv/memory.h"
#include "kv/quantise.h"
#include "plan/repack.h"
#include "plan/weight_placement.h"
#include "support/file_blocks.h"
#include "support/target.h"

namespace oriel_internal::test_quantise {
namespace {

std::vector<float> gaussians(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) {
    value = normal(random);
  }
  return values;
}

TEST(Quantise, int4_gives_the_documented_codes) {
  // The check of docs/decisions/014-cache-formats.md, computed by another program.
  float values[32];
  for (int j = 0; j < 32; ++j) {
    values[j] = (static_cast<float>(37 * j % 64) - 31.5f) / 16.0f;
  }
  uint8_t codes[32];
  EXPECT_EQ(0x324e, quantiseGroup(KvFormat::kInt4, values, 32, codes));
  const std::vector<uint8_t> want = {1, 10, 2, 12, 5, 14, 7,  1, 10, 3, 13, 5,  15, 8,  2, 11,
                                     4, 13, 6, 15, 9, 2,  12, 4, 14, 7, 1,  10, 3,  13, 5, 14};
  EXPECT_EQ(want, std::vector<uint8_t>(codes, codes + 32));
}

TEST(Quantise, codes_are_the_nearest_levels_of_their_scale) {
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kInt4}) {
    const uint32_t levels = format == KvFormat::kInt8 ? 256 : 16;
    for (uint32_t seed = 0; seed < 50; ++seed) {
      const std::vector<float> values = gaussians(32, seed);
      uint8_t codes[32];
      const float scale = halfToFloat(quantiseGroup(format, values.data(), 32, codes));
      for (uint32_t i = 0; i < 32; ++i) {
        double least = 1e9;
        for (uint32_t code = 0; code < levels; ++code) {
          if (format == KvFormat::kInt8 && code == 128) {
            continue;  // -128 is not used
          }
          least = std::min(
              least, std::fabs(static_cast<double>(values[i]) - scale * kvCodeValue(format, code)));
        }
        EXPECT_NEAR(least, std::fabs(values[i] - scale * kvCodeValue(format, codes[i])), 1e-6);
      }
    }
  }
}

TEST(Quantise, squared_error_is_what_the_formats_promise) {
  double int4 = 0, int8 = 0, energy = 0;
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const std::vector<float> values = gaussians(32, 1000 + seed);
    for (const KvFormat format : {KvFormat::kInt8, KvFormat::kInt4}) {
      uint8_t codes[32];
      const float scale = halfToFloat(quantiseGroup(format, values.data(), 32, codes));
      for (uint32_t i = 0; i < 32; ++i) {
        const double error = values[i] - scale * kvCodeValue(format, codes[i]);
        (format == KvFormat::kInt8 ? int8 : int4) += error * error;
      }
    }
    for (const float value : values) {
      energy += static_cast<double>(value) * value;
    }
  }
  EXPECT_NEAR(0.00536, int4 / energy, 0.0002);
  EXPECT_LT(int8 / energy, 0.00005);
}

TEST(Quantise, zeros_and_extremes_survive) {
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kInt4}) {
    uint8_t codes[32];
    const std::vector<float> zeros(32, 0.0f);
    const float scale = halfToFloat(quantiseGroup(format, zeros.data(), 32, codes));
    for (const uint8_t code : codes) {
      EXPECT_EQ(0.0f, scale * kvCodeValue(format, code));
    }
    std::vector<float> one(32, 0.0f);
    one[7] = -1000.0f;
    const float big = halfToFloat(quantiseGroup(format, one.data(), 32, codes));
    EXPECT_NEAR(-1000.0f, big * kvCodeValue(format, codes[7]), 20.0f);
  }
}

TEST(Quantise, hadamard_is_its_own_inverse_and_keeps_products) {
  for (const uint32_t n : {8u, 64u, 96u, 80u, 20u, 256u}) {
    const std::vector<float> a = gaussians(n, n), b = gaussians(n, n + 1);
    std::vector<float> ra = a, rb = b;
    hadamard(ra.data(), n, hadamardBlock(n));
    hadamard(rb.data(), n, hadamardBlock(n));
    double before = 0, after = 0;
    for (uint32_t i = 0; i < n; ++i) {
      before += static_cast<double>(a[i]) * b[i];
      after += static_cast<double>(ra[i]) * rb[i];
    }
    EXPECT_NEAR(before, after, 1e-4);
    hadamard(ra.data(), n, hadamardBlock(n));
    for (uint32_t i = 0; i < n; ++i) {
      EXPECT_NEAR(a[i], ra[i], 1e-5);
    }
  }
}

TEST(KvSide, what_is_stored_in_one_slot_is_loaded_from_it_and_no_other_changes) {
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kInt8, KvFormat::kInt4}) {
    for (const uint32_t head_dim : {8u, 10u, 20u, 64u, 80u, 96u, 256u}) {
      const CacheShape shape = {3, head_dim, 2, 5, 7};
      const SideLayout layout = sideLayout(format, shape);
      std::vector<uint32_t> words(layout.bytes / 4 + 1, 0xdeadbeefu);
      KvSide side(format, CacheShape{shape.n_kv_heads, head_dim, shape.sinks, 0, shape.ring},
                  words.data());
      std::vector<std::vector<float>> stored;
      std::vector<std::vector<float>> loaded;
      for (uint32_t head = 0; head < 3; ++head) {
        for (uint32_t slot = 0; slot < 7; ++slot) {
          stored.push_back(gaussians(head_dim, head * 100 + slot));
          side.storeRing(head, slot, stored.back().data());
        }
        for (uint32_t slot = 0; slot < 2; ++slot) {
          side.storeSink(head, slot, gaussians(head_dim, head * 100 + 50 + slot).data());
        }
      }
      const double tolerance = format == KvFormat::kF16    ? 2e-3
                               : format == KvFormat::kInt8 ? 0.03
                                                           : 0.6;
      std::vector<float> values(head_dim);
      for (uint32_t head = 0; head < 3; ++head) {
        for (uint32_t slot = 0; slot < 7; ++slot) {
          side.loadRing(head, slot, values.data());
          for (uint32_t i = 0; i < head_dim; ++i) {
            ASSERT_NEAR(stored[head * 7 + slot][i], values[i], tolerance)
                << kvFormatName(format) << head_dim;
          }
        }
        for (uint32_t slot = 0; slot < 2; ++slot) {
          side.loadSink(head, slot, values.data());
          const std::vector<float> want = gaussians(head_dim, head * 100 + 50 + slot);
          for (uint32_t i = 0; i < head_dim; ++i) {
            ASSERT_NEAR(want[i], values[i], 2e-3);
          }
        }
      }
      EXPECT_EQ(0xdeadbeefu, words.back()) << "written past the side";
    }
  }
}

TEST(KvSide, bytes_per_token_are_the_formats_bits) {
  for (const uint64_t head_dim : {32u, 64u, 96u, 128u, 256u}) {
    const uint32_t d = static_cast<uint32_t>(head_dim);
    EXPECT_EQ(head_dim * 2, kvSideBytesPerToken(KvFormat::kF16, 1, d));
    EXPECT_EQ(head_dim * 34 / 32, kvSideBytesPerToken(KvFormat::kInt8, 1, d));
    EXPECT_EQ(head_dim * 18 / 32, kvSideBytesPerToken(KvFormat::kInt4, 1, d));
  }
}

}  // namespace
}  // namespace oriel_internal::test_quantise

namespace oriel_internal::test_half {
namespace {

// Value of a half by its definition.
double valueOfHalf(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0) {
    return sign * std::ldexp(mantissa, -24);
  }
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

bool isFiniteHalf(uint16_t bits) { return ((bits >> 10) & 31) != 31; }

TEST(Half, every_finite_half_converts_exactly_and_back) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    if (isFiniteHalf(half)) {
      EXPECT_EQ(valueOfHalf(half), static_cast<double>(halfToFloat(half)));
      EXPECT_EQ(half, floatToHalf(halfToFloat(half)));
    }
  }
  EXPECT_TRUE(std::isinf(halfToFloat(0x7c00)));
  EXPECT_TRUE(std::isnan(halfToFloat(0x7e00)));
  EXPECT_TRUE(std::isnan(halfToFloat(floatToHalf(std::nanf("")))));
}

TEST(Half, rounding_goes_to_the_nearest_and_ties_to_even) {
  for (uint32_t bits = 0; bits + 1 < 0x7c00; ++bits) {
    const double low = valueOfHalf(static_cast<uint16_t>(bits));
    const double high = valueOfHalf(static_cast<uint16_t>(bits + 1));
    const float middle = static_cast<float>((low + high) / 2);  // exact: one more bit
    const uint16_t even = static_cast<uint16_t>(bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(even, floatToHalf(middle)) << bits;
    ASSERT_EQ(bits, floatToHalf(std::nextafter(middle, 0.0f))) << bits;
    ASSERT_EQ(bits + 1, floatToHalf(std::nextafter(middle, 1e9f))) << bits;
  }
  EXPECT_EQ(0x7bff, floatToHalf(65519.0f));
  EXPECT_EQ(0x7c00, floatToHalf(65520.0f));
  EXPECT_EQ(0xfc00, floatToHalf(-1e30f));
}

}  // namespace
}  // namespace oriel_internal::test_half

namespace oriel_internal::test_rope {
namespace {

// Angle of a phase in 80-bit arithmetic: position * theta^(-2i/d) reduced exactly to one turn.
long double exactAngle(double theta, uint32_t dims, uint32_t i, uint64_t position) {
  const long double frequency =
      std::pow(static_cast<long double>(theta), -2.0L * i / static_cast<long double>(dims));
  return std::remainder(frequency * static_cast<long double>(position), 2.0L * std::acos(-1.0L));
}

TEST(Rope, phases_agree_with_long_double_for_ever) {
  if (sizeof(long double) == sizeof(double)) {
    GTEST_SKIP() << "long double is no wider than double here: nothing to compare with";
  }
  for (const double theta : {10000.0, 500000.0, 1e6}) {
    for (const uint32_t dims : {8u, 64u, 128u}) {
      RopePhases phases;
      uint64_t steps[kMaxHeadDim / 2];
      phases.init(theta, dims, nullptr, 1.0, steps);
      std::vector<float> pairs(dims);
      for (const uint64_t position :
           {0ull, 1ull, 1000ull, (1ull << 20) + 7, (1ull << 24) + 12345, 1ull << 31}) {
        phases.rotations(position, pairs.data());
        for (uint32_t i = 0; i < dims / 2; ++i) {
          const long double angle = exactAngle(theta, dims, i, position);
          EXPECT_NEAR(static_cast<double>(std::cos(angle)), pairs[2 * i], 2e-7)
              << position << " " << i;
          EXPECT_NEAR(static_cast<double>(std::sin(angle)), pairs[2 * i + 1], 2e-7);
        }
      }
    }
  }
}

TEST(Rope, differences_of_positions_are_all_that_counts) {
  RopePhases phases;
  uint64_t steps[kMaxHeadDim / 2];
  phases.init(10000.0, 64, nullptr, 1.0, steps);
  // The phase is linear modulo a turn: exact, not approximately so, at any distance from zero.
  for (uint32_t i = 0; i < 32; ++i) {
    const uint64_t near = phases.step(i) * 1000 - phases.step(i) * 900;
    const uint64_t far =
        phases.step(i) * ((1ull << 50) + 1000) - phases.step(i) * ((1ull << 50) + 900);
    EXPECT_EQ(near, far);
  }
}

TEST(Rope, pairs_of_a_huge_divisor_never_turn) {
  constexpr uint32_t kDims = 16;
  double divisors[kDims / 2];
  for (uint32_t i = 0; i < kDims / 2; ++i) {
    divisors[i] = i < 3 ? 1.0 : 1e30;
  }
  RopePhases phases;
  uint64_t steps[kDims / 2];
  phases.init(1e6, kDims, divisors, 1.0, steps);
  for (const uint64_t position : {uint64_t{0}, uint64_t{1}, uint64_t{131071}, uint64_t{1} << 40,
                                  kMaxFirstPosition, ~uint64_t{0}}) {
    float pairs[kDims];
    phases.rotations(position, pairs);
    for (uint32_t i = 3; i < kDims / 2; ++i) {
      EXPECT_EQ(pairs[2 * i], 1.0f) << position;
      EXPECT_EQ(pairs[2 * i + 1], 0.0f) << position;
    }
    EXPECT_EQ(pairs[1] == 0.0f, position == 0) << "the first pair turns by one radian a token";
  }
}

}  // namespace
}  // namespace oriel_internal::test_rope

namespace oriel_internal::test_weight_layout {

// Repacked weights, read back, against dequantised file blocks by definition.

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
  // In an ordinary run each type has every third pair, so that all pairs are tried.
  uint32_t number = 0;
  for (const WeightType type : allTypes()) {
    for (const uint32_t first_row : {1u, 8u, 15u, 16u, 24u}) {
      number += 1;
      for (const uint32_t rows : {1u, 8u, 15u, 16u, 24u, 50u}) {
        if (test::allCases() || ++number % 3 == 0) {
          expectLossless(type, rows, 256, first_row);
        }
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
