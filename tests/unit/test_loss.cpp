// The loss model: its priors reproduce published and simulated results.
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "apps/oriel/measure/window_search.h"
#include "budget/loss.h"
#include "support/distances.h"

namespace oriel_internal::test_loss {
namespace {

struct Pair {
  KvFormat k;
  KvFormat v;
  double bits;  ///< of a key and a value, scales included
};
constexpr Pair kF16 = {KvFormat::kF16, KvFormat::kF16, 32};
constexpr Pair kK8V8 = {KvFormat::kInt8, KvFormat::kInt8, 17};
constexpr Pair kK8V4 = {KvFormat::kInt8, KvFormat::kInt4, 13};
constexpr Pair kK4V4 = {KvFormat::kInt4, KvFormat::kInt4, 9};
constexpr Pair kPairs[] = {kK4V4, kK8V4, kK8V8, kF16};

ModelDesc modelOf(uint32_t layers, uint32_t context_train = 0) {
  ModelDesc model;
  model.n_layers = layers;
  model.n_heads = model.n_kv_heads = 1;
  model.head_dim = 128;
  model.context_train = context_train;
  makeLayersAlike(&model);
  return model;
}

double lossOf(const Pair& pair, uint64_t tokens, uint32_t context_train = 0, uint32_t layers = 24) {
  CacheFormats formats;
  formats.k = pair.k;
  formats.v = pair.v;
  return LossModel().expected(formats, modelOf(layers, context_train), 0,
                              static_cast<uint32_t>(tokens));
}

/// In the memory that `f16_tokens` take in f16.
double lossIn(const Pair& pair, double f16_tokens) {
  return lossOf(pair, static_cast<uint64_t>(f16_tokens * kF16.bits / pair.bits));
}

TEST(Loss, the_optimum_moves_from_4_to_8_bits_as_memory_grows) {
  const struct {
    double f16_tokens, f16, k8v8, k8v4, k4v4;
    size_t best;
  } rows[] = {{512, .109, .070, .062, .057, 0},
              {2048, .040, .0264, .0260, .029, 1},
              {8192, .0147, .0103, .0128, .019, 2}};
  for (const auto& row : rows) {
    EXPECT_NEAR(row.f16, lossIn(kF16, row.f16_tokens), row.f16 * .05);
    EXPECT_NEAR(row.k8v8, lossIn(kK8V8, row.f16_tokens), row.k8v8 * .05);
    EXPECT_NEAR(row.k8v4, lossIn(kK8V4, row.f16_tokens), row.k8v4 * .05);
    EXPECT_NEAR(row.k4v4, lossIn(kK4V4, row.f16_tokens), row.k4v4 * .05);
    for (const Pair& pair : kPairs) {
      EXPECT_LE(lossIn(kPairs[row.best], row.f16_tokens), lossIn(pair, row.f16_tokens))
          << row.f16_tokens;
    }
  }
}

TEST(Loss, a_longer_window_and_finer_formats_never_cost) {
  for (uint64_t tokens = 8; tokens < (1u << 20); tokens += tokens / 8 + 1) {
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_LT(lossOf(kPairs[i], tokens + 1), lossOf(kPairs[i], tokens));
      if (i > 0) {
        EXPECT_LT(lossOf(kPairs[i], tokens), lossOf(kPairs[i - 1], tokens));
      }
    }
  }
}

TEST(Loss, keys_are_several_times_as_sensitive_as_values) {
  const LossModel loss;
  EXPECT_GT(loss.keys_int8, 7 * loss.values_int8);
  EXPECT_GT(loss.keys_int4, 2 * loss.values_int4) << "rotated";
}

TEST(Loss, rounding_is_averaged_over_layers_and_raised_keys_are_exact) {
  EXPECT_DOUBLE_EQ(lossOf(kK8V4, 1000, 0, 8), lossOf(kK8V4, 1000, 0, 80));
  CacheFormats formats;
  formats.k = KvFormat::kInt4;
  const double all = LossModel().expected(formats, modelOf(4), 0, 1000);
  formats.requireF16(0);
  formats.requireF16(3);
  const double half = LossModel().expected(formats, modelOf(4), 0, 1000);
  EXPECT_NEAR(LossModel().keys_int4 / 2, all - half, 1e-12);
}

TEST(Loss, layers_share_the_rounding_as_they_were_measured) {
  LayerCalibration layers[4] = {};
  layers[0].keys_int4 = 7;
  layers[1].keys_int4 = layers[2].keys_int4 = layers[3].keys_int4 = 1;
  LossModel loss;
  loss.layers = layers;
  CacheFormats formats;
  formats.k = KvFormat::kInt4;
  EXPECT_NEAR(loss.keys_int4, loss.roundingOfKeys(formats, modelOf(4)), 1e-15);
  formats.keepF16(0);
  EXPECT_NEAR(loss.keys_int4 * 0.3, loss.roundingOfKeys(formats, modelOf(4)), 1e-15);
  formats.keepF16(1);
  formats.keepF16(2);
  formats.keepF16(3);
  EXPECT_EQ(0, loss.roundingOfKeys(formats, modelOf(4)));
  EXPECT_EQ(0, loss.roundingOfValues(formats, modelOf(4)));
}

TEST(Loss, small_heads_make_keys_dearer) {
  const auto scaleOf = [](std::initializer_list<uint32_t> head_dims) {
    ModelDesc model = modelOf(static_cast<uint32_t>(head_dims.size()));
    for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
      LayerKind kind = model.kinds[0];
      kind.head_dim = head_dims.begin()[layer];
      model.layers[layer].kind = addKind(kind, &model);
    }
    return LossModel::keyPriorScale(model);
  };
  EXPECT_EQ(1, scaleOf({128, 128, 128}));
  EXPECT_EQ(2, scaleOf({64}));
  EXPECT_EQ(128.0 / 96, scaleOf({96, 96, 96, 96, 96, 96, 96}));
  EXPECT_GT(LossModel().keys_int4 * scaleOf({8, 8}), LossModel().kl_limit)
      << "measured 0.25 nats on a model with heads of 8";
  EXPECT_EQ(0.4, scaleOf({512, 256, 256, 256})) << "of the mean";
}

TEST(Loss, past_the_trained_context_more_is_worse) {
  for (const uint32_t trained : {1024u, 8192u, 131072u}) {
    EXPECT_DOUBLE_EQ(lossOf(kF16, trained), lossOf(kF16, trained, trained));
    double last = lossOf(kF16, trained, trained);
    for (uint64_t tokens = trained + trained / 8; tokens < 16ull * trained; tokens *= 2) {
      EXPECT_GT(lossOf(kF16, tokens, trained), last);
      last = lossOf(kF16, tokens, trained);
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test_loss

namespace oriel_internal::test::test_distances {
namespace {

TEST(Distances, the_worse_of_two_errors_is_the_greater_one) {
  EXPECT_EQ(2.0, worse(1, 2));
  EXPECT_EQ(2.0, worse(2, 1));
  EXPECT_EQ(HUGE_VAL, worse(2, HUGE_VAL));
}

TEST(Distances, what_is_not_a_number_stays_the_worst) {
  EXPECT_TRUE(std::isnan(worse(1, NAN)));
  EXPECT_TRUE(std::isnan(worse(NAN, 1)));
  EXPECT_TRUE(std::isnan(worse(worse(worse(0, NAN), 2), HUGE_VAL)));
}

}  // namespace
}  // namespace oriel_internal::test::test_distances

namespace cli {

// Shortening of layers' windows, with scores from a formula.

namespace {

// Alone layer k costs 11 - k, except for two whose loss is NaN.
TEST(WindowSearch, layers_whose_loss_is_no_number_cost_most) {
  constexpr uint32_t kLayers = 11;
  std::vector<uint32_t> layers(kLayers);
  std::iota(layers.begin(), layers.end(), 0);
  size_t calls = 0;
  const ScoreWindows score = [&](uint32_t, const std::vector<uint8_t>& shares) {
    if (++calls > kLayers) {  // of groups
      double sum = 0;
      for (const uint8_t share : shares) {
        sum += share == 0 ? 0 : 256 - share;
      }
      return sum;
    }
    for (uint32_t k = 0; k < kLayers; ++k) {
      if (shares[k] != 0) {
        return k == 4 || k == 7 ? std::numeric_limits<double>::quiet_NaN()
                                : double{kLayers} - static_cast<double>(k);
      }
    }
    return 0.0;
  };
  const std::vector<MeasuredWindows> found = searchWindows(kLayers, layers, 512, score);
  ASSERT_FALSE(found.empty());
  // In order of cost 10 9 8 6 5 3 2 1 0, then 4 and 7: groups take 1, 1, 2, 1, 1, 2, 1 and 2 of them.
  const std::vector<std::vector<uint32_t>> groups = {{10}, {9},    {8, 6}, {5},
                                                     {3},  {2, 1}, {0},    {4, 7}};
  for (const MeasuredWindows& windows : found) {
    for (const std::vector<uint32_t>& group : groups) {
      EXPECT_EQ(windows.shares[group.front()], windows.shares[group.back()]) << group.front();
    }
  }
}

}  // namespace
}  // namespace cli
