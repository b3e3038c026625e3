#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "base/half.h"
#include "kv/kv_side.h"
#include "kv/quantise.h"

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
