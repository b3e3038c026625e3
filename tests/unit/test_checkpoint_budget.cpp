// The budgeter's number of state checkpoints: small compared with the window, and never reducing anything when memory
// grows.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/limits.h"
#include "budget/budget.h"
#include "support/captured_log.h"

namespace oriel_internal::test_checkpoint_budget {
namespace {

constexpr uint32_t kWords = 64 * 1024;  // of a layer's state

/// Twelve layers, every third attends; `attends` false: none does.
ModelDesc hybrid(bool attends = true, bool states = true) {
  ModelDesc model;
  model.n_layers = 12;
  model.n_heads = 8;
  model.n_kv_heads = 2;
  model.head_dim = model.ropes[kMainRope].dims = 64;
  model.n_embd = 512;
  model.n_ff = 1024;
  model.n_vocab = 1000;
  model.context_train = 262144;
  makeLayersAlike(&model);
  if (!states) {
    return model;
  }
  LayerKind state;
  state.mixer = Mixer::kState;
  state.rope = kNoRope;
  state.state_words = kWords;
  state.n_ff = model.n_ff;
  state.view = addView({ViewKind::kState, 0}, &model);
  if (!attends) {
    model.kinds[0] = state;
    return model;
  }
  const uint8_t kind = addKind(state, &model);
  for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
    if (layer % 3 != 2) {
      model.layers[layer].kind = kind;
    }
  }
  return model;
}

Status tryChoose(const ModelDesc& model, BudgetRequest request, Budget* budget) {
  PlanTotals totals;
  totals.weights_bytes = 30u << 20;
  totals.upload_half_bytes = 65536;
  request.host_bytes = 123456;
  return chooseBudget(model, totals, request, Log(), budget);
}

Budget choose(const ModelDesc& model, const BudgetRequest& request) {
  Budget budget;
  EXPECT_TRUE(tryChoose(model, request, &budget).ok());
  return budget;
}

uint64_t stateOfAll(const ModelDesc& model) { return stateBytes(model, CacheFormats()); }

TEST(CheckpointBudget,
     checkpoints_take_a_quarter_of_the_windows_bytes_and_more_memory_shrinks_nothing) {
  const ModelDesc model = hybrid();
  ASSERT_EQ(8ull * 4 * kWords, stateOfAll(model));
  for (const bool fixed_formats : {true, false}) {
    for (const uint32_t chunk : {0u, 16u}) {
      BudgetRequest request;
      request.chunk = chunk;
      request.fixed_k = request.fixed_v = fixed_formats;
      const uint64_t least = choose(model, request).minimum_bytes;
      Budget before;
      uint32_t seen = 0;
      for (request.memory_bytes = least; request.memory_bytes < 40 * least;
           request.memory_bytes += least / 40) {
        SCOPED_TRACE(request.memory_bytes);
        const Budget now = choose(model, request);
        const uint64_t window = memoryGrowth(model, now.formats).per_token * now.cache.window;
        ASSERT_TRUE(now.fits);
        ASSERT_LE(now.bytes.total(), request.memory_bytes);
        ASSERT_LE(4 * now.cache.checkpoints * stateOfAll(model), window);
        ASSERT_EQ(least, now.minimum_bytes);
        if (fixed_formats) {
          ASSERT_GE(now.cache.checkpoints, before.cache.checkpoints);
          ASSERT_GE(now.cache.window, before.cache.window);
          ASSERT_GE(now.chunk, before.chunk);
        }
        seen |= 1u << now.cache.checkpoints;
        before = now;
      }
      EXPECT_EQ(fixed_formats ? 0x1Fu : seen | 0x11u, seen) << "none, and up to four";
    }
  }
}

TEST(CheckpointBudget, beside_a_window_that_was_asked_for_they_take_what_is_left) {
  const ModelDesc model = hybrid();
  for (const uint32_t window : {70u, 5000u, 200000u}) {
    BudgetRequest request;
    request.memory_bytes = 1ull << 30;
    request.fixed_k = request.fixed_v = true;
    request.window = window;
    for (uint32_t count = 4; count != 0; --count) {
      const Budget most = choose(model, request);
      EXPECT_EQ(count, most.cache.checkpoints) << window;
      EXPECT_EQ(window, most.cache.window);
      EXPECT_EQ(64u, most.chunk) << "the largest, which comes first";
      request.memory_bytes = most.bytes.total() - 1;
    }
    EXPECT_EQ(0u, choose(model, request).cache.checkpoints) << "and must fit";
  }
}

TEST(CheckpointBudget, as_many_as_are_asked_for_and_no_others) {
  const ModelDesc model = hybrid();
  BudgetRequest request;
  request.memory_bytes = 1ull << 30;
  request.fixed_checkpoints = true;
  uint64_t least = 0;
  for (const uint32_t count : {0u, 1u, 7u, kMaxCheckpoints}) {
    request.checkpoints = count;
    const Budget budget = choose(model, request);
    EXPECT_EQ(count, budget.cache.checkpoints);
    EXPECT_EQ(count * stateOfAll(model),
              budget.minimum_bytes - (count == 0 ? budget.minimum_bytes : least));
    least = count == 0 ? budget.minimum_bytes : least;
  }
  request.checkpoints = kMaxCheckpoints + 1;
  Budget budget;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, tryChoose(model, request, &budget).code());
}

TEST(CheckpointBudget, where_no_layer_attends_nothing_competes_with_them) {
  const ModelDesc model = hybrid(false);
  BudgetRequest request;
  const uint64_t least = choose(model, request).minimum_bytes;
  uint32_t before = 0;
  for (request.memory_bytes = least; request.memory_bytes < 4 * least;
       request.memory_bytes += least / 50) {
    const Budget now = choose(model, request);
    ASSERT_LE(now.bytes.total(), request.memory_bytes);
    ASSERT_GE(now.cache.checkpoints, before);
    before = now.cache.checkpoints;
  }
  EXPECT_EQ(4u, before);
}

TEST(CheckpointBudget, models_without_states_have_none_whatever_is_asked_for) {
  const ModelDesc model = hybrid(true, false);
  BudgetRequest request;
  request.memory_bytes = 200u << 20;
  const Budget chosen = choose(model, request);
  for (const uint32_t count : {0u, 5u}) {
    request.fixed_checkpoints = true;
    request.checkpoints = count;
    const Budget asked = choose(model, request);
    EXPECT_EQ(0u, asked.cache.checkpoints);
    EXPECT_EQ(chosen.cache.window, asked.cache.window);
    EXPECT_EQ(chosen.bytes.total(), asked.bytes.total());
  }
}

TEST(CheckpointBudget, more_than_one_layers_piece_has_room_for_are_named_as_what_is_too_many) {
  ModelDesc model = hybrid();
  model.kinds[1].state_words = (1u << 20) + 1;  // 31 of them are just below the binding limit
  BudgetRequest request;
  request.memory_bytes = 8ull << 30;
  request.fixed_checkpoints = true;
  request.checkpoints = 29;
  Budget budget;
  EXPECT_TRUE(tryChoose(model, request, &budget).ok());
  EXPECT_EQ(29u, budget.cache.checkpoints);

  request.checkpoints = 30;
  PlanTotals totals;
  test::CapturedLog log;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, chooseBudget(model, totals, request, log.log(), &budget).code());
  EXPECT_EQ("30 checkpoints need more than 134217728 bytes in one layer: ask for at most 29",
            log.errors());
}

}  // namespace
}  // namespace oriel_internal::test_checkpoint_budget
