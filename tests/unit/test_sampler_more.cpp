// DRY, XTC, typical and top-n-sigma against their definitions, in double over all logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "exec/sampler.h"

namespace oriel_internal::test_sampler_more {
namespace {

struct alignas(16) Block {
  uint8_t bytes[16];
};

/// A sampler with its memory.
class Made {
 public:
  Made(uint32_t n_vocab, const SamplerOptions& options) {
    Arena measure;
    Sampler().init(n_vocab, &measure);
    block_.assign(measure.used() / 16 + 1, {});
    Arena arena(block_.data(), measure.used());
    sampler.init(n_vocab, &arena);
    sampler.attach(&state);
    sampler.start(options);
  }
  std::set<int32_t> drawn(const std::vector<float>& logits, int draws = 3000) {
    std::set<int32_t> ids;
    for (int i = 0; i < draws; ++i) {
      ids.insert(sampler.sample(logits.data()));
    }
    return ids;
  }

  Sampler sampler;
  SamplerState state;

 private:
  std::vector<Block> block_;
};

SamplerOptions everything() {
  SamplerOptions options;
  options.temperature = 1;
  options.top_k = UINT32_MAX;
  options.top_p = 1;
  options.min_p = 0;
  options.seed = 11;
  return options;
}

/// Ids from the likeliest on.
std::vector<int32_t> sorted(const std::vector<double>& logits) {
  std::vector<int32_t> ids(logits.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int32_t>(i);
  }
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  return ids;
}

std::vector<double> probabilities(const std::vector<double>& logits) {
  double total = 0;
  std::vector<double> out;
  for (const double logit : logits) {
    out.push_back(std::exp(logit));
    total += out.back();
  }
  for (double& one : out) {
    one /= total;
  }
  return out;
}

std::vector<float> randomLogits(std::mt19937* random, size_t n) {
  std::normal_distribution<float> normal(0.0f, 1.3f);
  std::vector<float> logits(n);
  std::generate(logits.begin(), logits.end(), [&] { return normal(*random); });
  return logits;
}

TopTokens topOf(const std::vector<float>& logits) {
  const uint32_t n = static_cast<uint32_t>(logits.size());
  const TopPush push = {n, std::min(n, kMaxTopBlocks), 0};
  std::vector<uint32_t> keys(push.blocks);
  topBlocks(logits.data(), push, keys.data());
  TopTokens top;
  topTokens(logits.data(), push, keys.data(), &top);
  return top;
}

std::vector<double> wide(const std::vector<float>& logits) {
  return {logits.begin(), logits.end()};
}

// ---- Definitions ----

std::set<int32_t> definedSigma(const std::vector<double>& logits, double n) {
  double mean = 0;
  double most = -INFINITY;
  for (const double logit : logits) {
    mean += logit / static_cast<double>(logits.size());
    most = std::max(most, logit);
  }
  double variance = 0;
  for (const double logit : logits) {
    variance += (logit - mean) * (logit - mean) / static_cast<double>(logits.size());
  }
  std::set<int32_t> kept;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] >= most - n * std::sqrt(variance)) {
      kept.insert(static_cast<int32_t>(i));
    }
  }
  return kept;
}

std::set<int32_t> definedTypical(const std::vector<double>& logits, double mass) {
  const std::vector<double> p = probabilities(logits);
  double entropy = 0;
  for (const double one : p) {
    entropy -= one * std::log(one);
  }
  std::vector<std::pair<double, int32_t>> order;
  for (size_t i = 0; i < p.size(); ++i) {
    order.emplace_back(std::fabs(-std::log(p[i]) - entropy), static_cast<int32_t>(i));
  }
  std::sort(order.begin(), order.end());
  std::set<int32_t> kept;
  double seen = 0;
  for (const auto& [distance, id] : order) {
    kept.insert(id);
    seen += p[static_cast<size_t>(id)];
    if (seen > mass) {
      break;
    }
  }
  return kept;
}

std::set<int32_t> definedXtc(const std::vector<double>& logits, double threshold) {
  const std::vector<double> p = probabilities(logits);
  std::vector<int32_t> order = sorted(logits);
  size_t above = 0;
  while (above < order.size() && p[static_cast<size_t>(order[above])] >= threshold) {
    ++above;
  }
  if (above > 1) {
    order.erase(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(above) - 1);
  }
  return {order.begin(), order.end()};
}

/// DRY penalties after `context`, by comparing every pair of sequences.
std::map<int32_t, double> definedDry(std::vector<int32_t> context, const DryOptions& dry,
                                     const std::set<int32_t>& breakers) {
  if (context.size() > dry.window) {
    context.erase(context.begin(), context.end() - static_cast<std::ptrdiff_t>(dry.window));
  }
  std::map<int32_t, size_t> lengths;
  for (size_t next = 1; next < context.size(); ++next) {
    size_t length = 0;  // matching tokens before `next` and at the end
    while (length < next && breakers.count(context[context.size() - 1 - length]) == 0 &&
           context[next - 1 - length] == context[context.size() - 1 - length]) {
      ++length;
    }
    if (length >= dry.allowed_length) {
      size_t& longest = lengths[context[next]];
      longest = std::max(longest, length);
    }
  }
  std::map<int32_t, double> penalties;
  for (const auto& [id, length] : lengths) {
    penalties[id] =
        dry.multiplier * std::pow(dry.base, static_cast<double>(length - dry.allowed_length));
  }
  return penalties;
}

// ---- Against them ----

TEST(SamplerMore, each_keeps_what_its_definition_keeps) {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    // Few likely tokens, each drawn at some point.
    const std::vector<float> logits = randomLogits(&random, 3 + random() % 10);
    const uint32_t n = static_cast<uint32_t>(logits.size());
    SamplerOptions options = everything();
    options.temperature = 5;
    options.top_n_sigma = 0.25f + static_cast<float>(random() % 16) / 8;
    EXPECT_EQ(definedSigma(wide(logits), options.top_n_sigma), Made(n, options).drawn(logits));

    options = everything();
    options.temperature = 5;
    options.typical_p = 0.1f + static_cast<float>(random() % 8) / 10;
    EXPECT_EQ(definedTypical(wide(logits), options.typical_p), Made(n, options).drawn(logits));

    options = everything();
    options.temperature = 5;
    options.xtc_probability = 1;
    options.xtc_threshold = 0.02f + static_cast<float>(random() % 48) / 100;
    EXPECT_EQ(definedXtc(wide(logits), options.xtc_threshold), Made(n, options).drawn(logits));
  }
}

TEST(SamplerMore, sigma_leaves_out_what_a_mask_forbids) {
  const std::vector<float> logits = {50, 4, 3, -2, -INFINITY, NAN};
  SamplerOptions options = everything();
  options.temperature = 10;
  options.top_n_sigma = 1;
  Made made(6, options);
  const uint32_t mask = ~1u;
  made.sampler.setMask(&mask);
  EXPECT_EQ(definedSigma({4, 3, -2}, 1).size(), made.drawn(logits).size());
  EXPECT_EQ((std::set<int32_t>{1, 2}), made.drawn(logits));
}

TEST(SamplerMore, xtc_happens_as_often_as_it_is_told_to) {
  const std::vector<float> logits = {3, 2.9f, 2.8f, -4};
  SamplerOptions options = everything();
  options.xtc_probability = 0.3f;
  options.xtc_threshold = 0.2f;
  Made made(4, options);
  int top = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    top += made.sampler.sample(logits.data()) < 2 ? 1 : 0;
  }
  const std::vector<double> p = probabilities(wide(logits));
  EXPECT_NEAR(0.7 * (p[0] + p[1]), top / double{kDraws}, 0.015);
}

TEST(SamplerMore, steps_follow_each_other) {
  // Top-k of 5, typical among those, XTC among typical's result.
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    const std::vector<float> logits = randomLogits(&random, 30);
    SamplerOptions options = everything();
    options.top_k = 5;
    options.typical_p = 0.8f;
    options.xtc_probability = 1;
    options.xtc_threshold = 0.2f;
    options.temperature = 5;
    std::vector<int32_t> ids = sorted(wide(logits));
    const auto keep = [&](size_t n, const auto& defined) {
      ids.resize(n);
      std::vector<double> left;
      for (const int32_t id : ids) {
        left.push_back(double{logits[static_cast<size_t>(id)]});
      }
      std::vector<int32_t> kept;
      for (const int32_t at : defined(left)) {
        kept.push_back(ids[static_cast<size_t>(at)]);
      }
      ids = kept;
    };
    keep(5, [](const auto& left) { return definedTypical(left, 0.8f); });
    keep(ids.size(), [](const auto& left) { return definedXtc(left, 0.2f); });
    EXPECT_EQ(std::set<int32_t>(ids.begin(), ids.end()), Made(30, options).drawn(logits));
  }
}

TEST(SamplerMore, dry_takes_from_logits_what_its_definition_says) {
  constexpr uint32_t kVocab = 5;
  static const std::string kTexts[kVocab] = {"a", "b", "c", " d", "x:y"};
  const char* const breakers[] = {":"};
  std::mt19937 random(9);
  int punished = 0;
  for (int round = 0; round < 300; ++round) {
    SamplerOptions options = everything();
    options.greedy = true;
    options.dry.multiplier = 0.25f + static_cast<float>(random() % 8) / 4;
    options.dry.base = 1.0f + static_cast<float>(random() % 8) / 8;
    options.dry.allowed_length = 1 + random() % 4;
    options.dry.window = 1 + random() % 256;
    const bool breaks = random() % 2 == 0;
    options.dry.breakers = breakers;
    options.dry.n_breakers = breaks ? 1 : 0;
    options.dry.text_of = [](int32_t id, const void*) {
      const std::string& text = kTexts[static_cast<size_t>(id)];
      return TokenText{text.data(), text.size()};
    };
    Made made(kVocab, options);
    std::vector<int32_t> context;
    for (size_t n = random() % 300; n > 0; --n) {
      const int32_t id = static_cast<int32_t>(random() % (round % 2 == 0 ? 2 : kVocab));
      context.push_back(id);
      made.sampler.accept(id);
    }
    const std::map<int32_t, double> penalties =
        definedDry(context, options.dry, breaks ? std::set<int32_t>{4} : std::set<int32_t>{});
    for (int32_t id = 0; id < static_cast<int32_t>(kVocab); ++id) {
      // The token wins over the next one as long as it has more left than that.
      const auto found = penalties.find(id);
      const double penalty = found == penalties.end() ? 0 : found->second;
      punished += penalty != 0 ? 1 : 0;
      if (penalty > 1e6) {
        continue;
      }
      const int32_t other = (id + 1) % static_cast<int32_t>(kVocab);
      const double of_other = penalties.count(other) != 0 ? penalties.at(other) : 0;
      for (const double ahead : {penalty - of_other + 0.01, penalty - of_other - 0.01}) {
        std::vector<float> logits(kVocab, -INFINITY);
        logits[static_cast<size_t>(id)] = static_cast<float>(ahead);
        logits[static_cast<size_t>(other)] = 0;
        if (of_other < 1e4) {
          EXPECT_EQ(ahead > penalty - of_other ? id : other, made.sampler.sample(logits.data()));
        }
      }
    }
  }
  EXPECT_GT(punished, 300);
}

TEST(SamplerMore, a_breaker_may_begin_in_one_token_and_end_in_another) {
  static const std::string kTexts[] = {"a", "b", "<en", "d>", "<e"};
  const char* const breakers[] = {"<end>"};
  const auto next = [&](const std::vector<int32_t>& context) {
    SamplerOptions options = everything();
    options.greedy = true;
    options.dry.multiplier = 10;
    options.dry.breakers = breakers;
    options.dry.n_breakers = 1;
    options.dry.text_of = [](int32_t id, const void*) {
      const std::string& text = kTexts[static_cast<size_t>(id)];
      return TokenText{text.data(), text.size()};
    };
    Made made(5, options);
    for (const int32_t id : context) {
      made.sampler.accept(id);
    }
    return made.sampler.sample(std::vector<float>{1, 0.5f, 0, 0, 0}.data());
  };
  // After the earlier "x y" comes a.
  EXPECT_EQ(1, next({4, 3, 0, 4, 3}));  // "<e" "d>" is not a breaker
  EXPECT_EQ(0, next({2, 3, 0, 2, 3}));
}

TEST(SamplerMore, few_logits_suffice_as_far_as_they_say_as_much) {
  std::mt19937 random(13);
  constexpr uint32_t kVocab = 400;
  int used = 0;
  for (int round = 0; round < 60; ++round) {
    const std::vector<float> logits = randomLogits(&random, kVocab);
    SamplerOptions options = everything();
    options.top_k = 20;
    options.typical_p = round % 2 == 0 ? 0.7f : 1.0f;
    options.xtc_probability = round % 3 == 0 ? 0.5f : 0.0f;
    options.dry.multiplier = round % 5 == 0 ? 2.0f : 0.0f;
    options.seed = 1 + static_cast<uint64_t>(round);
    Made whole(kVocab, options);
    Made few(kVocab, options);
    for (int i = 0; i < 40; ++i) {
      const int32_t id = static_cast<int32_t>(random() % 3);
      whole.sampler.accept(id);
      few.sampler.accept(id);
    }
    const TopTokens top = topOf(logits);
    for (int i = 0; i < 20; ++i) {
      const int32_t want = whole.sampler.sample(logits.data());
      if (!few.sampler.suffices(top)) {
        break;
      }
      ++used;
      EXPECT_EQ(want, few.sampler.sample(top));
    }
    options.top_n_sigma = 1;
    EXPECT_FALSE(Made(kVocab, options).sampler.suffices(top)) << "it needs all of them";
  }
  EXPECT_GT(used, 600);
}

TEST(SamplerMore, off_they_change_no_draw) {
  std::mt19937 random(17);
  const std::vector<float> logits = randomLogits(&random, 100);
  SamplerOptions options = everything();
  Made usual(100, options);
  options.dry.window = 1;
  options.xtc_threshold = 0.01f;
  options.xtc_probability = 0;
  Made off(100, options);
  for (int i = 0; i < 500; ++i) {
    const int32_t id = usual.sampler.sample(logits.data());
    ASSERT_EQ(id, off.sampler.sample(logits.data()));
    usual.sampler.accept(id);
    off.sampler.accept(id);
  }
  options = everything();
  options.greedy = true;
  options.typical_p = 0.1f;
  options.top_n_sigma = 0.1f;
  options.xtc_probability = 1;
  EXPECT_TRUE(Made(100, options).sampler.takesTheBest());
  EXPECT_EQ(Made(100, options).drawn(logits, 3).size(), 1u);
  options.dry.multiplier = 1;
  EXPECT_FALSE(Made(100, options).sampler.takesTheBest());
}

}  // namespace
}  // namespace oriel_internal::test_sampler_more
