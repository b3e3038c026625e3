#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "exec/logprobs.h"

namespace oriel_internal::test_logprobs {
namespace {

/// In long double, subtracting the largest only if needed.
std::vector<double> logSoftmax(const std::vector<float>& logits) {
  long double most = -INFINITY;
  for (const float logit : logits) {
    most = std::isnan(logit) ? most : std::max<long double>(most, logit);
  }
  long double total = 0;
  for (const float logit : logits) {
    total += std::isnan(logit) ? 0 : std::exp(static_cast<long double>(logit) - most);
  }
  std::vector<double> out;
  for (const float logit : logits) {
    out.push_back(std::isnan(logit) ? -INFINITY
                                    : static_cast<double>(logit - most - std::log(total)));
  }
  return out;
}

TEST(Logprobs, are_the_log_softmax_of_all_logits) {
  std::mt19937 random(2);
  for (const float spread : {0.1f, 3.0f, 300.0f}) {
    std::vector<float> logits(5000);
    for (float& logit : logits) {
      logit = std::normal_distribution<float>(10, spread)(random);
    }
    logits[4] = -INFINITY;
    logits[5] = NAN;
    const std::vector<double> want = logSoftmax(logits);
    std::vector<int32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return want[a] > want[b]; });
    Logprobs logprobs;
    for (const uint32_t n_top : {0u, 1u, 7u, 20u}) {
      for (const int32_t chosen : {0, 4, 4999, order[0]}) {
        logprobs.compute(logits.data(), 5000, chosen, n_top);
        const double tolerance = 1e-6 * std::max(1.0, -want[chosen]);
        if (chosen == 4) {
          EXPECT_EQ(-INFINITY, logprobs.chosen());
        } else {
          EXPECT_NEAR(want[chosen], logprobs.chosen(), tolerance);
        }
        ASSERT_EQ(n_top, logprobs.topCount());
        for (uint32_t i = 0; i < n_top; ++i) {
          EXPECT_EQ(order[i], logprobs.top()[i].id) << i;
          EXPECT_NEAR(want[order[i]], logprobs.top()[i].logprob,
                      1e-6 * std::max(1.0, -want[order[i]]));
        }
      }
    }
  }
}

TEST(Logprobs, equals_stand_in_the_order_of_their_ids_and_the_impossible_nowhere) {
  const std::vector<float> logits = {1, -INFINITY, 2, 1, NAN, 2, 1};
  Logprobs logprobs;
  logprobs.compute(logits.data(), 7, 0, 4);
  ASSERT_EQ(4u, logprobs.topCount());
  const int32_t want[] = {2, 5, 0, 3};
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(want[i], logprobs.top()[i].id);
  }
  logprobs.compute(logits.data(), 7, 0, 20);
  EXPECT_EQ(5u, logprobs.topCount());
}

TEST(Logprobs, certainty_and_nothing_at_all_are_no_nan) {
  Logprobs logprobs;
  const std::vector<float> certain = {0, INFINITY, -5};
  logprobs.compute(certain.data(), 3, 1, 3);
  EXPECT_EQ(0.0f, logprobs.chosen());
  EXPECT_EQ(-INFINITY, logprobs.top()[1].logprob);
  const std::vector<float> nothing = {-INFINITY, NAN};
  logprobs.compute(nothing.data(), 2, 0, 3);
  EXPECT_EQ(-INFINITY, logprobs.chosen());
  EXPECT_EQ(0u, logprobs.topCount());
}

}  // namespace
}  // namespace oriel_internal::test_logprobs
