#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "budget/budget.h"
#include "budget/loss.h"
#include "kv/window.h"
#include "support/captured_log.h"

namespace oriel_internal::test_window {
namespace {

CacheShape shapeOf(uint32_t sinks, uint32_t window, uint32_t chunk) {
  return {1, 8, sinks, window, window + chunk - 1};
}

// The definition, with lists: the first `sinks` tokens and the last `window` ones.
std::set<uint64_t> visibleTokens(uint64_t t, uint32_t sinks, uint32_t window) {
  std::set<uint64_t> tokens;
  for (uint64_t p = 0; p <= t; ++p) {
    if (p < sinks || t - p < window) {
      tokens.insert(p);
    }
  }
  return tokens;
}

std::vector<uint32_t> slotsSeen(const SlidingWindow& window, const CacheShape& shape, uint64_t t) {
  const View seen = window.view(t);
  std::vector<uint32_t> slots;
  for (uint32_t i = 0; i < seen.n_sinks; ++i) {
    slots.push_back(i);
  }
  for (uint32_t i = 0; i < seen.count; ++i) {
    slots.push_back(shape.sinks + (seen.begin + i) % shape.ring);
  }
  return slots;
}

TEST(Window, slots_seen_hold_exactly_the_sinks_and_the_last_tokens) {
  for (const uint32_t sinks : {0u, 1u, 4u, 7u}) {
    for (const uint32_t window_tokens : {1u, 2u, 5u, 16u}) {
      for (const uint32_t chunk : {1u, 3u, 8u}) {
        const CacheShape shape = shapeOf(sinks, window_tokens, chunk);
        const SlidingWindow window(shape);
        std::map<uint32_t, uint64_t> stored;  // slot -> token
        // A chunk is stored whole before its first query looks.
        for (uint64_t begin = 0; begin < 120; begin += chunk) {
          for (uint64_t t = begin; t < begin + chunk; ++t) {
            stored[window.slot(t)] = t;
            EXPECT_EQ(window.slot(t), window.view(t).slot);
            EXPECT_LT(window.slot(t), sinks + shape.ring);
          }
          for (uint64_t t = begin; t < begin + chunk; ++t) {
            std::set<uint64_t> seen;
            for (const uint32_t slot : slotsSeen(window, shape, t)) {
              EXPECT_TRUE(seen.insert(stored.at(slot)).second) << "a slot is seen twice";
            }
            EXPECT_EQ(visibleTokens(t, sinks, window_tokens), seen)
                << "t " << t << " sinks " << sinks << " window " << window_tokens << " chunk "
                << chunk;
            EXPECT_EQ(seen.size(), SlidingWindow::visible(window.view(t)));
          }
        }
      }
    }
  }
}

TEST(Window, sink_query_stands_where_the_newest_cache_position_is) {
  const SlidingWindow window(shapeOf(4, 60, 8));
  // StreamingLLM: min(t, S + W - 1).
  for (const uint64_t t :
       {uint64_t{0}, uint64_t{3}, uint64_t{4}, uint64_t{63}, uint64_t{64}, uint64_t{1} << 40}) {
    EXPECT_EQ(std::min<uint64_t>(t, 63), SlidingWindow::sinkQueryIndex(window.view(t)));
  }
}

TEST(Window, a_floor_hides_older_tokens_but_never_the_sinks) {
  const CacheShape shape = shapeOf(4, 20, 8);
  const SlidingWindow window(shape);
  for (uint64_t t = 0; t < 100; ++t) {
    for (const uint64_t floor : {t - std::min<uint64_t>(t, 7), t, uint64_t{0}, t + 5}) {
      const View plain = window.view(t);
      const View seen = window.view(t, floor);
      EXPECT_EQ(plain.n_sinks, seen.n_sinks);
      EXPECT_EQ(plain.slot, seen.slot);
      if (t >= shape.sinks) {
        const uint64_t first = std::max({window.oldest(t), std::min(floor, t), uint64_t{4}});
        EXPECT_EQ(t - first + 1, seen.count);
        EXPECT_EQ(window.slot(first) - shape.sinks, seen.begin);
      }
    }
  }
}

TEST(Window, rewinding_is_legal_exactly_while_everything_needed_is_stored) {
  for (const uint32_t sinks : {0u, 4u}) {
    for (const uint32_t chunk : {1u, 8u}) {
      const CacheShape shape = shapeOf(sinks, 20, chunk);
      const SlidingWindow window(shape);
      std::map<uint32_t, uint64_t> held;
      for (uint64_t stored = 0; stored < 120; ++stored) {
        for (uint64_t kept = 0; kept <= stored; ++kept) {
          // The window must hold all earlier tokens that `kept` would see.
          bool all = true;
          for (const uint64_t p : visibleTokens(kept, sinks, 20)) {
            const auto found = held.find(window.slot(p));
            all = all && (p == kept || (found != held.end() && found->second == p));
          }
          EXPECT_EQ(all, window.canRewind(stored, kept))
              << "stored " << stored << " kept " << kept << " chunk " << chunk << " sinks "
              << sinks;
        }
        EXPECT_FALSE(window.canRewind(stored, stored + 1));
        held[window.slot(stored)] = stored;
      }
    }
  }
}

TEST(Window, positions_beyond_32_bits_keep_their_slots_in_range) {
  const CacheShape shape = shapeOf(4, 1000, 64);
  const SlidingWindow window(shape);
  for (uint64_t t = (1ull << 40) - 3; t < (1ull << 40) + 3000; ++t) {
    const View seen = window.view(t);
    ASSERT_LT(seen.slot, shape.sinks + shape.ring);
    ASSERT_EQ(1000u, seen.count);
    ASSERT_EQ(seen.slot, shape.sinks + (seen.begin + seen.count - 1) % shape.ring);
  }
}

}  // namespace
}  // namespace oriel_internal::test_window

namespace oriel_internal::test_window_profiles {

// Windows by layer: descriptions from shares, interpolation between measurements, and the budgeter's choice.

namespace {

constexpr uint32_t kLayers = 6;

ModelDesc modelOf(uint32_t n_layers = kLayers) {
  ModelDesc model;
  model.n_layers = n_layers;
  model.n_heads = 4;
  model.n_kv_heads = 2;
  model.head_dim = 64;
  model.ropes[kMainRope].dims = model.ropes[kSlidingRope].dims = 64;
  model.n_embd = 256;
  model.n_ff = 512;
  model.n_vocab = 1000;
  model.context_train = 2048;
  makeLayersAlike(&model);
  return model;
}

CacheShape shapeOf(uint32_t window, uint32_t chunk) {
  CacheShape cache;
  cache.n_kv_heads = 2;
  cache.head_dim = 64;
  cache.sinks = 4;
  cache.window = window;
  cache.ring = window + chunk - 1;
  return cache;
}

TEST(ShareWindow, layers_see_their_part_behind_all_sinks_and_rings_keep_the_slack) {
  ModelDesc model = modelOf();
  const uint8_t parts[kLayers] = {0, 64, 64, 1, 0, 255};
  ASSERT_TRUE(shareWindow(parts, &model));
  EXPECT_EQ(4u, model.n_views);
  const uint32_t windows[kLayers] = {1000, 250, 250, 4, 1000, 997};  // rounded up
  const CacheShape cache = shapeOf(1000, 16);
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    const Memory memory = memoryOf(model, cache, CacheFormats(), layer);
    EXPECT_EQ(windows[layer], memory.shape.window) << layer;
    EXPECT_EQ(windows[layer] + 15, memory.shape.ring) << layer;
    EXPECT_EQ(4u, memory.shape.sinks) << layer;
  }
}

TEST(ShareWindow, a_layer_that_reads_another_memory_sees_what_that_holds) {
  ModelDesc model = modelOf();
  model.layers[5].memory_of = 1;
  const uint8_t parts[kLayers] = {0, 64, 0, 0, 0, 128};
  ASSERT_TRUE(shareWindow(parts, &model));
  EXPECT_EQ(64u, model.viewOf(5).parts);
  test::CapturedLog log;
  EXPECT_TRUE(checkMemories(model, log.log()).ok());
}

TEST(ShareWindow, too_many_lengths_are_refused) {
  ModelDesc model = modelOf(12);
  uint8_t parts[12];
  for (uint32_t i = 0; i < 12; ++i) {
    parts[i] = static_cast<uint8_t>(10 + i);
  }
  EXPECT_FALSE(shareWindow(parts, &model));
}

TEST(ShareWindow, windows_of_layers_own_stay) {
  ModelDesc model = modelOf();
  LayerKind sliding = model.kinds[0];
  sliding.view = addView({ViewKind::kSliding, 100}, &model);
  model.layers[2].kind = addKind(sliding, &model);
  const uint8_t parts[kLayers] = {64, 64, 64, 64, 64, 0};
  ASSERT_TRUE(shareWindow(parts, &model));
  EXPECT_EQ(ViewKind::kSliding, model.viewOf(2).kind);
  EXPECT_EQ(100u, model.viewOf(2).window);
  EXPECT_EQ(64u, model.viewOf(3).parts);
}

/// Uniform windows of 32 to 1024 tokens, each half costing 0.1 nats more, and one by layer.
struct Measured {
  std::vector<WindowProfile> list;
  WindowProfiles profiles() const {
    return {list.data(), static_cast<uint32_t>(list.size()), kLayers};
  }
};

Measured measured(double loss_by_layer) {
  Measured all;
  for (uint32_t i = 0; i < 6; ++i) {
    WindowProfile uniform;
    uniform.window = 1024 >> i;
    uniform.loss = 0.1 * i;
    all.list.push_back(uniform);
  }
  WindowProfile by_layer;
  by_layer.window = 512;
  by_layer.loss = loss_by_layer;
  const uint8_t parts[kLayers] = {32, 32, 32,
                                  32, 0,  0};  // 64, 64, 64, 64, 512, 512: 213 on average
  std::copy_n(parts, kLayers, by_layer.parts);
  all.list.push_back(by_layer);
  return all;
}

TEST(WindowProfiles, losses_between_measurements_follow_the_logarithm_of_the_length) {
  const Measured all = measured(0.02);
  const WindowProfiles profiles = all.profiles();
  EXPECT_DOUBLE_EQ(0.2, profiles.uniformLoss(256));
  EXPECT_NEAR(0.15, profiles.uniformLoss(362.04), 1e-4);
  EXPECT_DOUBLE_EQ(0.0, profiles.uniformLoss(5000));
  EXPECT_DOUBLE_EQ(0.5, profiles.uniformLoss(5));
  const WindowProfile& by_layer = all.list.back();
  EXPECT_NEAR((4 * 0.125 + 2) / 6, profiles.meanShare(by_layer), 1e-12);
  EXPECT_NEAR(0.02 - profiles.uniformLoss(640.0 / 3), profiles.advantage(by_layer), 1e-9);
}

Budget choose(const WindowProfiles& profiles, BudgetRequest request) {
  request.loss.profiles = profiles;
  request.host_bytes = 1000;
  PlanTotals totals;
  totals.weights_bytes = 1 << 20;
  totals.upload_half_bytes = 4096;
  Budget budget;
  test::CapturedLog log;
  EXPECT_TRUE(chooseBudget(modelOf(), totals, request, log.log(), &budget).ok()) << log.errors();
  return budget;
}

BudgetRequest requestOf(uint64_t memory) {
  BudgetRequest request;
  request.memory_bytes = memory;
  return request;
}

TEST(WindowProfiles, the_budgeter_takes_the_profile_that_loses_less_in_the_same_bytes) {
  const Measured good = measured(0.0);
  const Measured bad = measured(0.4);
  const Budget least = choose({}, requestOf(1));
  uint32_t taken = 0;
  for (uint64_t memory = least.minimum_bytes; memory < 3 * least.minimum_bytes; memory += 50'000) {
    const Budget uniform = choose({}, requestOf(memory));
    const Budget by_layer = choose(good.profiles(), requestOf(memory));
    EXPECT_EQ(nullptr, uniform.profile);
    EXPECT_LE(by_layer.bytes.total(), memory);
    EXPECT_EQ(uniform.minimum_bytes, by_layer.minimum_bytes) << memory;
    if (by_layer.profile != nullptr) {
      ++taken;
      EXPECT_EQ(&good.list.back(), by_layer.profile);
      ModelDesc shared = modelOf();
      ASSERT_TRUE(shareWindow(by_layer.profile->parts, &shared));
      PlanTotals totals;
      totals.weights_bytes = 1 << 20;
      totals.upload_half_bytes = 4096;
      EXPECT_EQ(by_layer.bytes.total(),
                budgetBytes(shared, totals, 1000, by_layer.cache, by_layer.formats, by_layer.chunk)
                    .total());
    }
    EXPECT_EQ(nullptr, choose(bad.profiles(), requestOf(memory)).profile) << memory;
  }
  EXPECT_GT(taken, 5u);
}

// For each kind: a profile measured with short windows, and a profile with the longest window.
TEST(WindowProfiles, more_memory_loses_more_only_where_the_longest_window_fits_in_all_formats) {
  for (const uint32_t window : {256u, 512u, 2044u}) {
    SCOPED_TRACE(window);
    Measured all = measured(-0.2);
    all.list.back().window = window;
    const uint64_t least = choose({}, requestOf(1)).minimum_bytes;
    double loss = 1e9;
    uint32_t by_layer = 0;
    uint32_t rises = 0;
    for (uint64_t memory = least; memory < 9 * least; memory += 40'000) {
      const Budget budget = choose(all.profiles(), requestOf(memory));
      ASSERT_TRUE(budget.fits);
      ASSERT_LE(budget.bytes.total(), memory);
      by_layer += budget.profile != nullptr ? 1 : 0;
      if (budget.profile != nullptr) {
        EXPECT_LE(budget.cache.window, 2 * window) << memory;
      }
      if (budget.loss > loss + 1e-12) {
        ++rises;
        for (uint32_t i = 0; i < budget.n_choices; ++i) {
          EXPECT_EQ(2044u, budget.choices[i].cache.window) << memory;
          EXPECT_EQ(nullptr, budget.choices[i].profile) << memory;
        }
      }
      loss = budget.loss;
    }
    EXPECT_GT(by_layer, 20u);
    EXPECT_EQ(1u, rises);
  }
}

TEST(WindowProfiles, what_is_shared_out_loses_what_its_mean_does_less_the_advantage) {
  const Measured fair = measured(0.1);
  LossModel loss;
  loss.profiles = fair.profiles();
  loss.forget_scale = 1;
  loss.forget_power = 0.5;
  const double mean = 640.0 / 3;
  EXPECT_NEAR(1 / std::sqrt(4 + mean) + 0.1 - loss.profiles.uniformLoss(mean),
              loss.expected(CacheFormats(), modelOf(), 4, 512, &fair.list.back()), 1e-9);
}

TEST(WindowProfiles, where_the_longest_window_fits_or_was_asked_for_all_layers_see_it) {
  const Measured good = measured(-1.0);
  const Budget all = choose(good.profiles(), requestOf(1u << 30));
  EXPECT_EQ(nullptr, all.profile);
  EXPECT_EQ(2044u, all.cache.window);
  BudgetRequest fixed = requestOf(1u << 30);
  fixed.window = 300;
  EXPECT_EQ(nullptr, choose(good.profiles(), fixed).profile);
}

}  // namespace
}  // namespace oriel_internal::test_window_profiles
