// Keys stored a second time, in 8 bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "exec/recall_attention.h"

namespace oriel_internal::test_recall_keys {
namespace {

struct Rounded {
  float scale = 0;
  std::vector<int> codes;
};

Rounded rounded(const std::vector<float>& values, bool says = true) {
  std::vector<uint8_t> key(sizeof(float) + values.size());
  roundKey(values.data(), static_cast<uint32_t>(values.size()), says, key.data());
  Rounded read;
  std::memcpy(&read.scale, key.data(), sizeof(float));
  for (size_t i = sizeof(float); i < key.size(); ++i) {
    read.codes.push_back(static_cast<int8_t>(key[i]));
  }
  return read;
}

TEST(RecallKeys, the_largest_value_is_127_scales) {
  const Rounded key = rounded({0.5f, -2.0f, 1.0f, 0});
  EXPECT_EQ(2.0f / 127, key.scale);
  EXPECT_EQ((std::vector<int>{32, -127, 64, 0}), key.codes);
  EXPECT_EQ(0, rounded({0, 0}).scale);
  EXPECT_EQ((std::vector<int>{0, 0}), rounded({0, 0}).codes);
  EXPECT_EQ(-1, rounded({0.5f, -2.0f}, /*says=*/false).scale);
}

TEST(RecallKeys, what_is_not_finite_says_nothing) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {inf, -inf, nan, -nan}) {
    for (size_t at = 0; at < 3; ++at) {
      std::vector<float> values = {1, -2, 3};
      values[at] = bad;
      const Rounded key = rounded(values);
      EXPECT_EQ(-1, key.scale) << bad << " at " << at;
      EXPECT_EQ((std::vector<int>{0, 0, 0}), key.codes) << bad << " at " << at;
    }
  }
}

// A scale of so few bits is rounded by up to a half.
TEST(RecallKeys, denormal_keys_stay_within_127) {
  const float least = std::numeric_limits<float>::denorm_min();
  for (int n = 1; n < 2000; ++n) {
    const float value = static_cast<float>(n) * least;
    for (const int code : rounded({value, -value}).codes) {
      EXPECT_LE(std::abs(code), 127) << n;
    }
  }
  EXPECT_EQ((std::vector<int>{127, -127}),
            rounded({std::numeric_limits<float>::max(), -std::numeric_limits<float>::max()}).codes);
}

// The token's readable heads count.
TEST(RecallKeys, a_head_that_says_nothing_leaves_the_others) {
  RecallLayer layer;
  layer.n_heads = layer.n_kv_heads = 2;
  layer.head_dim = 4;
  layer.scale = 1;
  const std::vector<float> queries(8, 1.0f);
  std::vector<uint8_t> keys(2 * (sizeof(float) + 4));
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(), 0, 0, 0};
  const float good[] = {1, 0, 0, 0};
  roundKey(bad, 4, true, keys.data());
  roundKey(good, 4, true, keys.data() + sizeof(float) + 4);
  double sums[2] = {};
  RecallScorer(layer, queries.data(), 1).add(keys.data(), sums);
  EXPECT_EQ(0, sums[0]);
  EXPECT_NEAR(std::exp(1.0), sums[1], 1e-5);
}

}  // namespace
}  // namespace oriel_internal::test_recall_keys
