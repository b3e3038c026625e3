// The kernels that find the best tokens, against a plain sort. Device/Kernels is instantiated in
// test_kernels.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "exec/top_tokens.h"
#include "plan/memory_layout.h"
#include "support/kernel_rig.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_kernels_top {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Ids of all logits above minus infinity, best first, on a tie the lower id first.
std::vector<uint32_t> sortedIds(const std::vector<float>& logits) {
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < logits.size(); ++id) {
    if (logits[id] > -kInfinity) {
      ids.push_back(id);
    }
  }
  std::stable_sort(ids.begin(), ids.end(),
                   [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
  return ids;
}

struct TopRig : KernelRig {
  explicit TopRig(const std::vector<float>& logits)
      : n_vocab(static_cast<uint32_t>(logits.size())) {
    const TopPush push = {n_vocab, topBlocks(n_vocab), 0};
    const BufferRef in = input(logits);
    keys = output(push.blocks);
    top = output(sizeof(TopTokens) / 4);
    add(StepList::kHead, OpKind::kTopBlocks, push, {in, keys});
    add(StepList::kHead, OpKind::kTopTokens, push, {in, top, keys});
  }
  TopTokens result() const {
    TopTokens tokens;
    std::memcpy(static_cast<void*>(&tokens), words(top), sizeof(tokens));
    return tokens;
  }

  uint32_t n_vocab;
  BufferRef keys;
  BufferRef top;
};

void expectBest(const TopTokens& top, const std::vector<float>& logits) {
  const std::vector<uint32_t> want = sortedIds(logits);
  ASSERT_LE(top.count, std::min<size_t>(want.size(), kTopCapacity));
  for (uint32_t i = 0; i < top.count; ++i) {
    ASSERT_EQ(want[i], top.best[i].id) << i;
    ASSERT_EQ(0, std::memcmp(&logits[want[i]], &top.best[i].logit, sizeof(float))) << i;
  }
  if (top.all != 0) {
    EXPECT_EQ(want.size(), top.count);
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, top_tokens_are_the_first_of_all_that_are_sorted) {
  for (const uint32_t n_vocab :
       {1u, 5u, 127u, 128u, 129u, 160u, 161u, 300u, 2047u, 2048u, 2049u, 5000u, 49152u, 262144u}) {
    for (const float scale : {4.0f, 1e-40f}) {  // and subnormal ones
      SCOPED_TRACE(std::to_string(n_vocab) + " times " + std::to_string(scale));
      Random random(n_vocab);
      std::vector<float> logits = random.normals(n_vocab, scale);
      if (n_vocab >= 127) {
        logits[n_vocab / 2] = NAN;
        logits[n_vocab / 3] = -NAN;
        logits[n_vocab / 4] = -kInfinity;
        logits[n_vocab / 5] = kInfinity;
        logits[n_vocab - 1] = logits[7] = 3 * scale;
        logits[n_vocab - 2] = -0.0f;
        logits[3] = 0.0f;
      }
      TopRig rig(logits);
      load(&rig);
      run(&rig, StepRun::kHead);
      const TopTokens top = rig.result();
      expectBest(top, logits);
      const size_t numbers = sortedIds(logits).size();
      EXPECT_EQ(std::min<size_t>(numbers, kTopCapacity), top.count);
      EXPECT_EQ(numbers <= kTopCapacity ? 1u : 0u, top.all);
    }
  }
}

// The likeliest tokens of many vocabularies have the lowest ids.
RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, top_tokens_are_found_where_they_are_neighbours) {
  std::vector<float> logits(50000);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = -0.001f * static_cast<float>(i);
  }
  for (int turn = 0; turn < 2; ++turn) {
    TopRig rig(logits);
    load(&rig);
    run(&rig, StepRun::kHead);
    expectBest(rig.result(), logits);
    EXPECT_EQ(kTopCapacity, rig.result().count);
    std::reverse(logits.begin(), logits.end());
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, top_tokens_have_the_lowest_of_many_equals_first) {
  for (const uint32_t n_vocab : {200u, 5000u, 49152u}) {
    for (const uint32_t values : {1u, 2u, 40u, 1000u}) {
      SCOPED_TRACE(std::to_string(values) + " among " + std::to_string(n_vocab));
      Random random(values);
      std::vector<float> logits(n_vocab);
      for (float& logit : logits) {
        logit = static_cast<float>(random.below(values)) - 20.0f;
      }
      TopRig rig(logits);
      load(&rig);
      run(&rig, StepRun::kHead);
      const TopTokens top = rig.result();
      expectBest(top, logits);
      EXPECT_GE(top.count, 1u) << "enough to choose greedily";
      EXPECT_EQ(0u, top.all);
    }
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, top_tokens_are_none_where_no_logit_is_a_number) {
  for (const float nothing : {-kInfinity, static_cast<float>(NAN)}) {
    const std::vector<float> logits(3000, nothing);
    TopRig rig(logits);
    load(&rig);
    run(&rig, StepRun::kHead);
    EXPECT_EQ(0u, rig.result().count);
    EXPECT_EQ(1u, rig.result().all);
  }
}

RUNS_ON(kEachDevice, "subgroup");
TEST_P(Kernels, top_blocks_have_keys_that_order_as_their_best_logits_do) {
  Random random(3);
  std::vector<float> logits = random.normals(7000);
  logits[11] = NAN;
  TopRig rig(logits);
  load(&rig);
  run(&rig, StepRun::kHead);
  std::vector<float> best(kMaxTopBlocks, -kInfinity);
  for (uint32_t id = 0; id < logits.size(); ++id) {
    best[id % kMaxTopBlocks] = std::fmax(best[id % kMaxTopBlocks], logits[id]);
  }
  const uint32_t* const keys = rig.words(rig.keys);
  for (uint32_t a = 0; a + 1 < kMaxTopBlocks; ++a) {
    ASSERT_EQ(best[a] < best[a + 1], keys[a] < keys[a + 1]) << a;
    ASSERT_NE(0u, keys[a]);
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_kernels_top
