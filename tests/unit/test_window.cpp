#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "kv/window.h"

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
