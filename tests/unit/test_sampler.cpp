#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "exec/sampler.h"
#include "support/target.h"

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

// Logits of many steps, every other with many equal ones; drawn tokens recur.
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
    const int steps = test::allCases() ? 100 : 40;
    for (int step = 0; step < steps; ++step) {
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

namespace oriel_internal::test_sampler_adjust {

// Penalties, biases and masks, against a definition in this file.

namespace {

/// A choice's options.
struct Knobs {
  SamplerOptions options;
  std::vector<LogitBias> biases;
  std::vector<int32_t> recent;  ///< tokens accepted, in order
  std::vector<bool> allowed;    ///< empty: all
  std::set<int32_t> held;
};

/// A sampler with memory of its own.
class Owned {
 public:
  Owned(uint32_t n_vocab, const Knobs& knobs) {
    Arena measure;
    sampler.init(n_vocab, &measure);
    block_.assign(measure.used() / 16 + 1, {});
    Arena arena(block_.data(), measure.used());
    sampler.init(n_vocab, &arena);
    EXPECT_FALSE(arena.exhausted());
    sampler.attach(&state);
    start(knobs);
    for (const int32_t id : knobs.recent) {
      sampler.accept(id);
    }
  }
  void start(const Knobs& knobs) {
    SamplerOptions options = knobs.options;
    options.biases = knobs.biases.data();
    options.n_biases = static_cast<uint32_t>(knobs.biases.size());
    sampler.start(options);
    mask_.assign(knobs.allowed.size() / 32 + 1, 0);
    for (size_t i = 0; i < knobs.allowed.size(); ++i) {
      mask_[i / 32] |= knobs.allowed[i] ? 1u << (i % 32) : 0u;
    }
    sampler.setMask(knobs.allowed.empty() ? nullptr : mask_.data());
    for (const int32_t id : knobs.held) {
      sampler.holdBack(id);
    }
    sampler.hold(!knobs.held.empty());
  }
  Sampler sampler;
  SamplerState state;

 private:
  struct alignas(16) Block {
    uint8_t bytes[16];
  };
  std::vector<Block> block_;
  std::vector<uint32_t> mask_;
};

/// The definition. Forbidden tokens and NaN: minus infinity.
std::vector<double> adjusted(const std::vector<float>& logits, const Knobs& knobs) {
  std::vector<double> out(logits.begin(), logits.end());
  std::map<int32_t, int> times;
  const size_t window = std::min<size_t>(knobs.recent.size(), knobs.options.repeat_window);
  for (size_t i = knobs.recent.size() - window; i < knobs.recent.size(); ++i) {
    ++times[knobs.recent[i]];
  }
  for (const auto& [id, n] : times) {
    double& logit = out[id];
    logit = logit > 0 ? logit / knobs.options.repeat_penalty : logit * knobs.options.repeat_penalty;
    logit -= knobs.options.presence_penalty + n * double{knobs.options.frequency_penalty};
  }
  for (const LogitBias& bias : knobs.biases) {
    out[bias.id] += bias.bias;
  }
  for (size_t id = 0; id < out.size(); ++id) {
    const bool may = (knobs.allowed.empty() || knobs.allowed[id]) &&
                     knobs.held.count(static_cast<int32_t>(id)) == 0;
    out[id] = may && !std::isnan(out[id]) ? out[id] : -INFINITY;
  }
  return out;
}

/// Ids of the k best with nonzero probability.
std::vector<int32_t> bestIds(const std::vector<double>& logits, size_t k) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > -INFINITY) {
      ids.push_back(static_cast<int32_t>(i));
    }
  }
  std::stable_sort(ids.begin(), ids.end(),
                   [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  ids.resize(std::min(k, ids.size()));
  return ids;
}

TopTokens topOf(const std::vector<float>& logits) {
  const TopPush push = {static_cast<uint32_t>(logits.size()),
                        std::min(static_cast<uint32_t>(logits.size()), kMaxTopBlocks), 0};
  std::vector<uint32_t> keys(push.blocks);
  topBlocks(logits.data(), push, keys.data());
  TopTokens top;
  topTokens(logits.data(), push, keys.data(), &top);
  return top;
}

Knobs everything() {
  Knobs knobs;
  knobs.options.temperature = 1;
  knobs.options.top_k = UINT32_MAX;
  knobs.options.top_p = 1;
  knobs.options.min_p = 0;
  return knobs;
}

/// Multiples of 1/8 with many ties: sums and products with the options are exact in float, so the definition has the
/// same ties.
class RandomCases {
 public:
  explicit RandomCases(uint32_t n_vocab, uint32_t seed) : n_vocab_(n_vocab), random_(seed) {}

  uint32_t number(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
  float eighths(int most) {
    return static_cast<float>(static_cast<int>(number(2 * static_cast<uint32_t>(most) + 1)) -
                              most) /
           8;
  }
  int32_t id() { return static_cast<int32_t>(number(n_vocab_)); }
  std::vector<float> logits() {
    std::vector<float> out(n_vocab_);
    for (float& logit : out) {
      logit = eighths(200);
    }
    out[number(n_vocab_)] = NAN;
    out[number(n_vocab_)] = -INFINITY;
    return out;
  }
  Knobs knobs() {
    Knobs knobs;
    knobs.options.seed = 1 + number(1000);
    knobs.options.greedy = number(3) == 0;
    knobs.options.top_k = std::vector<uint32_t>{1, 5, 40, 64, UINT32_MAX}[number(5)];
    knobs.options.temperature = 8;
    knobs.options.min_p = 0;
    knobs.options.top_p = number(2) == 0 ? 1.0f : 0.9f;
    knobs.options.repeat_penalty = std::vector<float>{1, 1, 2, 0.5f}[number(4)];
    knobs.options.presence_penalty = number(2) == 0 ? 0 : eighths(16);
    knobs.options.frequency_penalty = number(2) == 0 ? 0 : eighths(4);
    knobs.options.repeat_window = std::vector<uint32_t>{1, 64, 200, 256}[number(4)];
    const uint32_t n_recent = number(400);
    const uint32_t kinds = 1 + number(200);
    for (uint32_t i = 0; i < n_recent; ++i) {
      knobs.recent.push_back(static_cast<int32_t>(number(kinds) * 7 % n_vocab_));
    }
    const uint32_t n_biases = number(3) == 0 ? number(200) : number(3);
    for (uint32_t i = 0; i < n_biases; ++i) {
      knobs.biases.push_back(
          {id(), number(6) == 0 ? -INFINITY : eighths(number(2) == 0 ? 8 : 100)});
    }
    if (number(2) == 0) {
      const uint32_t one_of = 1 + number(40);
      for (uint32_t i = 0; i < n_vocab_; ++i) {
        knobs.allowed.push_back(number(one_of) == 0);
      }
    }
    for (uint32_t i = number(3); i > 0; --i) {
      knobs.held.insert(id());
    }
    return knobs;
  }

 private:
  const uint32_t n_vocab_;
  std::mt19937 random_;
};

TEST(SamplerAdjust, the_best_after_adjusting_is_chosen_by_greedy) {
  constexpr uint32_t kVocab = 700;  // not whole words of a mask
  RandomCases cases(kVocab, 3);
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE(i);
    Knobs knobs = cases.knobs();
    knobs.options.greedy = true;
    const std::vector<float> logits = cases.logits();
    const std::vector<int32_t> best = bestIds(adjusted(logits, knobs), 1);
    if (!best.empty()) {
      ASSERT_EQ(best[0], Owned(kVocab, knobs).sampler.sample(logits.data()));
    }
  }
}

TEST(SamplerAdjust, the_k_best_after_adjusting_are_drawn_and_no_others) {
  constexpr uint32_t kVocab = 1000;
  RandomCases cases(kVocab, 4);
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE(i);
    Knobs knobs = cases.knobs();
    knobs.options.greedy = false;
    knobs.options.top_k = 5;
    knobs.options.top_p = 1;
    knobs.options.temperature = 100;
    const std::vector<float> logits = cases.logits();
    const std::vector<int32_t> best = bestIds(adjusted(logits, knobs), 5);
    Owned owned(kVocab, knobs);
    std::set<int32_t> drawn;
    for (int draw = 0; draw < 300; ++draw) {
      drawn.insert(owned.sampler.sample(logits.data()));
    }
    EXPECT_EQ(std::set<int32_t>(best.begin(), best.end()), drawn);
  }
}

TEST(SamplerAdjust, frequencies_follow_the_softmax_of_the_adjusted_logits) {
  Knobs knobs = everything();
  knobs.options.seed = 11;
  knobs.options.repeat_penalty = 1.5f;
  knobs.options.presence_penalty = 0.3f;
  knobs.options.frequency_penalty = 0.2f;
  knobs.options.repeat_window = 5;
  knobs.options.temperature = 1.7f;
  knobs.recent = {6, 6, 1, 1, 2, 1, 4};
  knobs.biases = {{0, 1.25f}, {1, 0.5f}, {5, -INFINITY}, {0, -0.5f}};
  knobs.allowed = {true, true, true, true, true, true, true, false, true};
  knobs.held = {8};
  const std::vector<float> logits = {0.1f, 1.5f, -1.0f, 0.7f, 2.0f, 3.0f, 1.1f, 4.0f, 5.0f};
  const std::vector<double> want = adjusted(logits, knobs);
  double total = 0;
  for (const double logit : want) {
    total += std::exp(logit / double{knobs.options.temperature});
  }
  Owned owned(9, knobs);
  constexpr int kDraws = 40000;
  std::vector<double> seen(9);
  for (int i = 0; i < kDraws; ++i) {
    seen[owned.sampler.sample(logits.data())] += 1.0 / kDraws;
  }
  for (size_t id = 0; id < want.size(); ++id) {
    const double p = std::exp(want[id] / double{knobs.options.temperature}) / total;
    EXPECT_NEAR(p, seen[id], 4 * std::sqrt(p * (1 - p) / kDraws)) << id;  // exactly 0 if p is 0
  }
}

// If the best tokens suffice, the same token is drawn with the same random numbers.
TEST(SamplerAdjust, the_best_tokens_give_what_all_logits_give_or_say_that_they_cannot) {
  constexpr uint32_t kVocab = 3000;
  RandomCases cases(kVocab, 5);
  int enough = 0;
  int enough_adjusted = 0;
  for (int i = 0; i < 1500; ++i) {
    SCOPED_TRACE(i);
    const Knobs knobs = cases.knobs();
    const std::vector<float> logits = cases.logits();
    const TopTokens top = topOf(logits);
    Owned from_all(kVocab, knobs);
    Owned from_best(kVocab, knobs);
    for (int draw = 0; draw < 3; ++draw) {
      if (!from_best.sampler.suffices(top)) {
        break;
      }
      ++enough;
      enough_adjusted += from_best.sampler.sample(top) != static_cast<int32_t>(top.best[0].id);
      from_best.state = from_all.state;
      const int32_t id = from_all.sampler.sample(logits.data());
      ASSERT_EQ(id, from_best.sampler.sample(top));
      ASSERT_EQ(from_all.state.random, from_best.state.random);
      from_all.sampler.accept(id);
      from_best.sampler.accept(id);
    }
  }
  EXPECT_GT(enough, 400);
  EXPECT_GT(enough_adjusted, 100);
}

TEST(SamplerAdjust, what_the_list_of_best_tokens_cannot_know_needs_all_logits) {
  std::vector<float> logits(1000);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = -0.01f * static_cast<float>(i);
  }
  const TopTokens top = topOf(logits);
  Knobs knobs;
  knobs.options.top_k = 40;
  const auto enough = [&](const Knobs& of) { return Owned(1000, of).sampler.suffices(top); };
  ASSERT_TRUE(enough(knobs));
  Knobs lifted = knobs;
  lifted.biases = {{127, 50}};
  EXPECT_TRUE(enough(lifted)) << "it is in the list";
  lifted.biases = {{128, 0.001f}};
  EXPECT_FALSE(enough(lifted)) << "it is not";
  lifted.biases = {{128, -50}, {500, -INFINITY}};
  EXPECT_TRUE(enough(lifted)) << "nothing comes from outside";
  lifted.biases = {{128, 0.5f}};
  lifted.recent = {128};
  lifted.options.presence_penalty = 0.5f;
  EXPECT_TRUE(enough(lifted)) << "both together do not lift it";
  lifted.options.presence_penalty = 0.25f;
  EXPECT_FALSE(enough(lifted));
  Knobs masked = knobs;
  masked.allowed.assign(1000, false);
  for (int id = 88; id < 128; ++id) {
    masked.allowed[id] = true;
  }
  EXPECT_TRUE(enough(masked));
  masked.held = {90};
  EXPECT_FALSE(enough(masked)) << "39 are left";
  masked.held.clear();
  masked.options.greedy = true;
  masked.allowed.assign(1000, false);
  masked.allowed[127] = true;
  EXPECT_TRUE(enough(masked));
  masked.allowed[127] = false;
  masked.allowed[128] = true;
  EXPECT_FALSE(enough(masked));
}

TEST(SamplerAdjust, only_what_adjusts_nothing_takes_the_best_whatever_came_before) {
  Knobs knobs;
  const auto takes = [&] { return Owned(100, knobs).sampler.takesTheBest(); };
  EXPECT_FALSE(takes()) << "it draws";
  knobs.options.greedy = true;
  knobs.recent = {1, 2, 3};
  EXPECT_TRUE(takes());
  for (float SamplerOptions::*const penalty :
       {&SamplerOptions::repeat_penalty, &SamplerOptions::presence_penalty,
        &SamplerOptions::frequency_penalty}) {
    const float off = knobs.options.*penalty;
    knobs.options.*penalty = 0.5f;
    EXPECT_FALSE(takes());
    knobs.options.*penalty = off;
  }
  knobs.biases = {{3, 0.0f}};
  EXPECT_FALSE(takes());
  knobs.biases.clear();
  knobs.allowed.assign(100, true);
  EXPECT_FALSE(takes());
  knobs.allowed.clear();
  knobs.held = {3};
  EXPECT_FALSE(takes());
  Owned owned(100, knobs);
  owned.sampler.hold(false);
  EXPECT_TRUE(owned.sampler.takesTheBest());
}

TEST(SamplerAdjust, the_window_of_repetition_counts_back_from_the_latest_token) {
  Knobs knobs;
  knobs.options.greedy = true;
  knobs.options.presence_penalty = 1;
  for (int32_t id = 0; id < 300; ++id) {
    knobs.recent.push_back(id);
  }
  std::vector<float> logits(400);
  for (const uint32_t window : {1u, 63u, 64u, 65u, 255u, 256u}) {
    knobs.options.repeat_window = window;
    // Equal logits: the lowest id that was not used recently.
    std::fill(logits.begin(), logits.end(), 0.0f);
    std::fill_n(logits.begin(), 300 - window, -5.0f);
    EXPECT_EQ(300, Owned(400, knobs).sampler.sample(logits.data())) << window;
    logits[299 - window] = 0;
    EXPECT_EQ(static_cast<int32_t>(299 - window), Owned(400, knobs).sampler.sample(logits.data()));
  }
}

TEST(SamplerAdjust, biases_of_one_token_add_up_and_minus_infinity_outweighs_all) {
  Knobs knobs;
  knobs.options.greedy = true;
  const std::vector<float> logits = {0, 1, 2};
  knobs.biases = {{0, 1.5f}, {0, 1.0f}};
  EXPECT_EQ(0, Owned(3, knobs).sampler.sample(logits.data()));
  knobs.biases = {{0, 3e38f}, {0, 3e38f}, {0, -INFINITY}, {2, -INFINITY}};
  EXPECT_EQ(1, Owned(3, knobs).sampler.sample(logits.data()));
}

TEST(SamplerAdjust,
     where_nothing_has_any_probability_the_lowest_allowed_token_is_taken_if_there_is_one) {
  const std::vector<float> logits(40, -INFINITY);
  const TopTokens top = topOf(logits);
  Knobs knobs;
  const auto both = [&] {
    const int32_t id = Owned(40, knobs).sampler.sample(logits.data());
    Owned owned(40, knobs);
    EXPECT_TRUE(owned.sampler.suffices(top));
    EXPECT_EQ(id, owned.sampler.sample(top));
    return id;
  };
  EXPECT_EQ(0, both());
  knobs.biases = {{0, -INFINITY}, {1, 5}};
  EXPECT_EQ(1, both());
  knobs.allowed.assign(40, false);
  knobs.allowed[0] = knobs.allowed[36] = knobs.allowed[38] = true;
  EXPECT_EQ(36, both());
  knobs.held = {36};
  EXPECT_EQ(38, both());
  knobs.held.insert(38);
  EXPECT_EQ(Sampler::kNone, both());
}

TEST(SamplerAdjust, a_mask_and_biases_are_those_of_one_generation) {
  std::vector<float> logits(64);
  logits[9] = 1;
  Knobs knobs;
  knobs.options.greedy = true;
  knobs.allowed.assign(64, true);
  knobs.allowed[9] = false;
  knobs.biases = {{0, -1}};
  knobs.held = {1};
  Owned owned(64, knobs);
  EXPECT_EQ(2, owned.sampler.sample(logits.data()));
  SamplerOptions plain;
  plain.greedy = true;
  owned.sampler.start(plain);
  EXPECT_EQ(9, owned.sampler.sample(logits.data()));
  EXPECT_TRUE(owned.sampler.takesTheBest());
}

}  // namespace
}  // namespace oriel_internal::test_sampler_adjust
