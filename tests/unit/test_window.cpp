#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <set>

#include "kv/window.h"

namespace oriel {
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
  const TokenStep step = window.step(t);
  std::vector<uint32_t> slots;
  for (uint32_t i = 0; i < step.n_sinks; ++i) {
    slots.push_back(i);
  }
  for (uint32_t i = 0; i < step.n_ring; ++i) {
    slots.push_back(shape.sinks + (step.ring_begin + i) % shape.ring);
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
            EXPECT_EQ(window.slot(t), window.step(t).slot);
            EXPECT_LT(window.slot(t), sinks + shape.ring);
          }
          for (uint64_t t = begin; t < begin + chunk; ++t) {
            std::set<uint64_t> seen;
            for (const uint32_t slot : slotsSeen(window, shape, t)) {
              EXPECT_TRUE(seen.insert(stored.at(slot)).second) << "a slot is seen twice";
            }
            EXPECT_EQ(visibleTokens(t, sinks, window_tokens), seen)
                << "t " << t << " sinks " << sinks << " window " << window_tokens << " chunk " << chunk;
            EXPECT_EQ(seen.size(), window.visible(t));
          }
        }
      }
    }
  }
}

TEST(Window, sink_query_stands_where_the_newest_cache_position_is) {
  const SlidingWindow window(shapeOf(4, 60, 8));
  EXPECT_EQ(0u, window.sinkQueryIndex(0));
  EXPECT_EQ(63u, window.sinkQueryIndex(63));
  EXPECT_EQ(63u, window.sinkQueryIndex(64));
  EXPECT_EQ(63u, window.sinkQueryIndex(1ull << 40));
}

TEST(Window, positions_beyond_32_bits_keep_their_slots_in_range) {
  const CacheShape shape = shapeOf(4, 1000, 64);
  const SlidingWindow window(shape);
  for (uint64_t t = (1ull << 40) - 3; t < (1ull << 40) + 3000; ++t) {
    const TokenStep step = window.step(t);
    ASSERT_LT(step.slot, shape.sinks + shape.ring);
    ASSERT_EQ(1000u, step.n_ring);
    ASSERT_EQ(step.slot, shape.sinks + (step.ring_begin + step.n_ring - 1) % shape.ring);
  }
}

}  // namespace
}  // namespace oriel
