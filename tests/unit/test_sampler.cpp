#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "exec/sampler.h"
#include "exec/top_tokens.h"

namespace oriel_internal::test_sampler {
namespace {

class SamplerTest : public testing::Test {
 protected:
  Sampler make(const std::vector<float>& logits, const SamplerOptions& options) {
    Arena measure;
    Sampler sampler;
    sampler.init(static_cast<uint32_t>(logits.size()), &measure);
    (void)measure.take<SamplerState>(1);
    block_.assign(measure.used() / 16 + 1, {});
    Arena arena(block_.data(), measure.used());
    sampler.init(static_cast<uint32_t>(logits.size()), &arena);
    sampler.attach(new (arena.take<SamplerState>(1)) SamplerState());
    EXPECT_FALSE(arena.exhausted());
    sampler.start(options);
    return sampler;
  }

  std::map<int32_t, double> frequencies(const std::vector<float>& logits, SamplerOptions options) {
    options.seed = 7;
    Sampler sampler = make(logits, options);
    std::map<int32_t, double> counts;
    const int draws = 20000;
    for (int i = 0; i < draws; ++i) {
      counts[sampler.sample(logits.data())] += 1.0 / draws;
    }
    return counts;
  }

  struct alignas(16) Block {
    uint8_t bytes[16];
  };
  std::vector<Block> block_;
};

SamplerOptions everything() {
  SamplerOptions options;
  options.temperature = 1;
  options.top_k = UINT32_MAX;
  options.top_p = 1;
  options.min_p = 0;
  return options;
}

TEST_F(SamplerTest, frequencies_follow_the_softmax) {
  const std::vector<float> logits = {0.0f, 1.0f, 2.0f, -1.0f};
  SamplerOptions options = everything();
  options.temperature = 2.0f;
  const auto counts = frequencies(logits, options);
  double total = 0;
  for (const float logit : logits) {
    total += std::exp(logit / 2.0);
  }
  for (int32_t id = 0; id < 4; ++id) {
    EXPECT_NEAR(std::exp(logits[id] / 2.0) / total, counts.at(id), 0.012);
  }
}

TEST_F(SamplerTest, greedy_takes_the_lowest_of_equal_bests_and_ignores_nan) {
  SamplerOptions options;
  options.greedy = true;
  const std::vector<float> logits = {NAN, 1.0f, 5.0f, 5.0f, -INFINITY};
  EXPECT_EQ(2, make(logits, options).sample(logits.data()));
}

TEST_F(SamplerTest, top_k_keeps_the_k_most_likely) {
  SamplerOptions options = everything();
  options.top_k = 2;
  const auto counts = frequencies({0.1f, 0.3f, 0.2f, 0.0f}, options);
  EXPECT_EQ(2u, counts.size());
  EXPECT_TRUE(counts.count(1) == 1 && counts.count(2) == 1);
}

TEST_F(SamplerTest, top_p_keeps_the_smallest_set_that_reaches_the_mass) {
  // Probabilities 0.5, 0.3, 0.15, 0.05.
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f),
                                     std::log(0.05f)};
  SamplerOptions options = everything();
  options.top_p = 0.7f;
  EXPECT_EQ(2u, frequencies(logits, options).size());
  options.top_p = 0.9f;
  EXPECT_EQ(3u, frequencies(logits, options).size());
  options.top_p = 0.01f;
  EXPECT_EQ(1u, frequencies(logits, options).size());
}

TEST_F(SamplerTest, min_p_drops_what_is_far_below_the_best) {
  const std::vector<float> logits = {std::log(0.6f), std::log(0.3f), std::log(0.1f)};
  SamplerOptions options = everything();
  options.min_p = 0.4f;
  EXPECT_EQ(2u, frequencies(logits, options).size());
}

TEST_F(SamplerTest, repeated_tokens_are_penalised_once_each) {
  SamplerOptions options;
  options.greedy = true;
  options.repeat_penalty = 2.0f;
  const std::vector<float> logits = {4.0f, 3.0f, -1.0f};
  Sampler sampler = make(logits, options);
  EXPECT_EQ(0, sampler.sample(logits.data()));
  sampler.accept(0);
  sampler.accept(0);
  EXPECT_EQ(1, sampler.sample(logits.data()));  // 4 / 2 < 3
  sampler.accept(1);
  EXPECT_EQ(0, sampler.sample(logits.data()));  // 4 / 2 > 3 / 2
}

// Ties, penalties and NaN among many more logits than are kept: every drawn token is among the k best by a plain sort,
// and each of those is drawn.
TEST_F(SamplerTest, a_penalty_makes_tokens_less_likely_whatever_the_sign_of_their_logit) {
  SamplerOptions options = everything();
  options.greedy = true;
  options.repeat_penalty = 2.0f;
  for (const std::vector<float>& logits :
       {std::vector<float>{-1.0f, -1.5f}, {3.0f, 2.0f}, {1.0f, -0.4f}, {0.5f, 0.4f}}) {
    Sampler sampler = make(logits, options);
    EXPECT_EQ(0, sampler.sample(logits.data()));
    sampler.accept(0);
    EXPECT_EQ(logits[1] > 0 || logits[0] < 0 ? 1 : 0, sampler.sample(logits.data())) << logits[0];
  }
}

// The most likely token has 64% at temperature 1, and 29% at 10.
TEST_F(SamplerTest, top_p_and_min_p_count_probabilities_before_the_temperature) {
  const std::vector<float> logits = {2.0f, 1.0f, 0.0f, -1.0f};
  SamplerOptions options = everything();
  options.temperature = 10;
  EXPECT_EQ(4u, frequencies(logits, options).size());
  options.top_p = 0.6f;
  EXPECT_EQ(1u, frequencies(logits, options).size());
  options.top_p = 1;
  options.min_p = 0.5f;
  EXPECT_EQ(1u, frequencies(logits, options).size());
}

TEST_F(SamplerTest, top_k_of_many_is_what_sorting_all_of_them_gives) {
  constexpr uint32_t kVocab = 5000, kBest = 7;
  for (const bool rising : {true, false}) {
    std::vector<float> logits(kVocab);
    for (uint32_t i = 0; i < kVocab; ++i) {
      logits[i] = 0.001f * static_cast<float>((rising ? i : kVocab - i) / 3);
    }
    logits[17] = NAN;
    logits[4998] = -INFINITY;
    SamplerOptions options = everything();
    options.top_k = kBest;
    options.repeat_penalty = 1.5f;
    Sampler sampler = make(logits, options);
    const std::vector<int32_t> recent = {4999, 0, 2500, 17, 0};
    std::vector<float> changed = logits;
    for (const int32_t id : recent) {
      sampler.accept(id);
      changed[id] = logits[id] > 0 ? logits[id] / 1.5f : logits[id] * 1.5f;
    }
    std::vector<int32_t> ids;
    for (uint32_t i = 0; i < kVocab; ++i) {
      if (!std::isnan(changed[i])) {
        ids.push_back(static_cast<int32_t>(i));
      }
    }
    std::stable_sort(ids.begin(), ids.end(),
                     [&](int32_t a, int32_t b) { return changed[a] > changed[b]; });
    const std::set<int32_t> want(ids.begin(), ids.begin() + kBest);
    std::set<int32_t> drawn;
    for (int i = 0; i < 500; ++i) {
      drawn.insert(sampler.sample(logits.data()));
    }
    EXPECT_EQ(drawn, want);
    options.greedy = true;
    sampler.start(options);
    EXPECT_EQ(sampler.sample(logits.data()), ids[0]);
  }
}

TopTokens bestOf(const std::vector<float>& logits) {
  const TopPush push = {static_cast<uint32_t>(logits.size()),
                        std::min(static_cast<uint32_t>(logits.size()), kMaxTopBlocks), 0};
  std::vector<uint32_t> keys(push.blocks);
  topBlocks(logits.data(), push, keys.data());
  TopTokens top;
  topTokens(logits.data(), push, keys.data(), &top);
  return top;
}

// Logits of 1000 steps, every other with many equal ones; drawn tokens recur.
TEST_F(SamplerTest, the_best_tokens_give_what_all_logits_give) {
  constexpr uint32_t kVocab = 3000;
  std::vector<SamplerOptions> all;
  for (const uint32_t k : {1u, 3u, 40u, 64u}) {
    for (const float penalty : {1.0f, 1.3f, 20.0f}) {
      SamplerOptions options;
      options.top_k = k;
      options.repeat_penalty = penalty;
      options.temperature = 2.0f;
      all.push_back(options);
      options.top_p = 1;
      options.min_p = 0;
      options.temperature = 50.0f;
      all.push_back(options);
      options.greedy = true;
      all.push_back(options);
    }
  }
  std::mt19937 random(5);
  std::set<int32_t> seen;
  for (const SamplerOptions& options : all) {
    std::vector<float> logits(kVocab);
    Sampler from_all = make(logits, options);
    const std::vector<Block> kept = std::move(block_);
    Sampler from_best = make(logits, options);
    for (int step = 0; step < 100; ++step) {
      for (float& logit : logits) {
        const float value = std::normal_distribution<float>(0, 4)(random);
        logit = step % 2 == 0 ? value : std::floor(4 * value);
      }
      logits[step] = step % 3 == 0 ? NAN : -INFINITY;
      logits[step + 1] = 30;  // likely twice, so that the penalty matters
      const TopTokens top = bestOf(logits);
      ASSERT_EQ(kTopCapacity, top.count);
      ASSERT_TRUE(from_best.suffices(top));
      const int32_t id = from_all.sample(logits.data());
      ASSERT_EQ(id, from_best.sample(top)) << "k " << options.top_k << " step " << step;
      seen.insert(id);
      from_all.accept(id);
      from_best.accept(id);
      from_all.accept(step + 2);
      from_best.accept(step + 2);
    }
    EXPECT_EQ(from_all.state()->random, from_best.state()->random);
  }
  EXPECT_GT(seen.size(), 200u);
}

TEST_F(SamplerTest, the_best_tokens_do_not_do_where_one_outside_could_be_drawn) {
  std::vector<float> logits(3000);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = 0.01f * static_cast<float>(i % 1777);
  }
  const TopTokens top = bestOf(logits);
  SamplerOptions options;
  EXPECT_TRUE(make(logits, options).suffices(top));
  options.top_k = UINT32_MAX;
  EXPECT_FALSE(make(logits, options).suffices(top)) << "top-p alone";
  options.greedy = true;
  EXPECT_TRUE(make(logits, options).suffices(top));
  options.repeat_penalty = 0.5f;
  EXPECT_FALSE(make(logits, options).suffices(top)) << "moves recent tokens up";
  options.greedy = false;
  options.top_k = 40;
  options.repeat_penalty = 1.1f;
  TopTokens few = top;
  few.count = 42;
  Sampler sampler = make(logits, options);
  for (const int32_t id : {5, 6, 1776, 1775, 1776}) {
    sampler.accept(id);
  }
  EXPECT_TRUE(sampler.suffices(few)) << "two of the 42 move down";
  sampler.accept(1774);
  EXPECT_FALSE(sampler.suffices(few)) << "three do";
  EXPECT_FALSE(sampler.takesTheBest());
  few.all = 1;
  EXPECT_TRUE(sampler.suffices(few));
}

TEST_F(SamplerTest, same_seed_same_tokens) {
  std::vector<float> logits(100);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = std::sin(static_cast<float>(i));
  }
  const auto draw = [&](uint64_t seed) {
    SamplerOptions options;
    options.seed = seed;
    Sampler sampler = make(logits, options);
    std::vector<int32_t> ids;
    for (int i = 0; i < 50; ++i) {
      ids.push_back(sampler.sample(logits.data()));
    }
    return ids;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

}  // namespace
}  // namespace oriel_internal::test_sampler
