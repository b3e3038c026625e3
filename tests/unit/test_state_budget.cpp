// The budgeter's formats of recurrent states: f32 if there is room, f16 if that gains more window than it costs, int8
// only on request.
#include <gtest/gtest.h>

#include "budget/budget.h"
#include "support/captured_log.h"

namespace oriel_internal::test_state_budget {
namespace {

constexpr uint32_t kLayers = 8;
constexpr uint32_t kStates = 6;
constexpr uint64_t kMatrixValues = 16 * 64 * 64;

/// Eight layers: twice three delta-rule layers and an attention layer.
ModelDesc hybrid() {
  ModelDesc model;
  model.n_layers = kLayers;
  model.n_heads = 8;
  model.n_kv_heads = 2;
  model.head_dim = 64;
  model.n_embd = 512;
  model.n_ff = 1024;
  model.n_vocab = 512;
  model.context_train = 32768;
  makeLayersAlike(&model);
  LayerKind kind;
  kind.mixer = Mixer::kState;
  kind.n_ff = model.n_ff;
  kind.state.rule = StateRule::kDelta;
  kind.state.conv_taps = 4;
  kind.state.key_heads = kind.state.heads = 16;
  kind.state.key_dim = kind.state.value_dim = 64;
  kind.state_words = kind.state.matrixValues() + kind.state.columnWords();
  kind.view = addView({ViewKind::kState, 0}, &model);
  const uint8_t state = addKind(kind, &model);
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    model.layers[layer].kind = layer % 4 != 3 ? state : 0;
  }
  return model;
}

Budget choose(const BudgetRequest& request) {
  PlanTotals totals;
  totals.weights_bytes = 1 << 20;
  totals.upload_half_bytes = 65536;
  test::CapturedLog log;
  Budget budget;
  EXPECT_TRUE(chooseBudget(hybrid(), totals, request, log.log(), &budget).ok()) << log.errors();
  return budget;
}

BudgetRequest requestOf(uint64_t memory) {
  BudgetRequest request;
  request.memory_bytes = memory;
  return request;
}

BudgetRequest fixedTo(StateFormat format, uint64_t memory) {
  BudgetRequest request = requestOf(memory);
  request.fixed_state = true;
  request.formats.state = format;
  return request;
}

constexpr uint64_t kPlenty = uint64_t{1} << 40;

TEST(StateBudget, f32_where_there_is_room) {
  const Budget budget = choose(requestOf(kPlenty));
  EXPECT_EQ(StateFormat::kF32, budget.formats.state);
  EXPECT_EQ(StateFormat::kF32, choose(fixedTo(StateFormat::kF32, kPlenty)).formats.state);
  EXPECT_EQ(budget.bytes.total(), choose(fixedTo(StateFormat::kF32, kPlenty)).bytes.total());
}

TEST(StateBudget, bytes_follow_the_format) {
  BudgetRequest request = fixedTo(StateFormat::kF32, kPlenty);
  request.window = 100;
  request.fixed_checkpoints = true;
  const uint64_t f32 = choose(request).bytes.cache;
  request.formats.state = StateFormat::kF16;
  const uint64_t f16 = choose(request).bytes.cache;
  request.formats.state = StateFormat::kInt8;
  const uint64_t int8 = choose(request).bytes.cache;
  const uint64_t values = kStates * kMatrixValues * kStateSlots;
  // Except for alignment; groups of 32 have scales of two bytes.
  EXPECT_NEAR(static_cast<double>(2 * values), static_cast<double>(f32 - f16), 8192.0);
  EXPECT_NEAR(static_cast<double>(3 * values - values / 16), static_cast<double>(f32 - int8),
              8192.0);
}

TEST(StateBudget, the_better_of_f32_and_f16_is_taken_in_every_memory) {
  const uint64_t least = choose(fixedTo(StateFormat::kF16, kPlenty)).minimum_bytes;
  EXPECT_EQ(least, choose(requestOf(kPlenty)).minimum_bytes) << "less fits than with f32";
  EXPECT_LT(least, choose(fixedTo(StateFormat::kF32, kPlenty)).minimum_bytes);
  bool taken[2] = {};
  for (uint64_t memory = least; memory < 32 * least; memory += memory / 20) {
    const Budget budget = choose(requestOf(memory));
    const Budget f32 = choose(fixedTo(StateFormat::kF32, memory));
    const Budget f16 = choose(fixedTo(StateFormat::kF16, memory));
    ASSERT_TRUE(budget.fits);
    ASSERT_LE(budget.bytes.total(), memory);
    ASSERT_NE(StateFormat::kInt8, budget.formats.state);
    ASSERT_EQ(budget.loss, f32.fits ? std::min(f32.loss, f16.loss) : f16.loss) << memory;
    taken[budget.formats.state == StateFormat::kF16 ? 1 : 0] = true;
  }
  EXPECT_TRUE(taken[0]);
  EXPECT_TRUE(taken[1]);
}

TEST(StateBudget, what_a_calibration_finds_too_dear_is_not_chosen_unless_asked_for) {
  const uint64_t least = choose(fixedTo(StateFormat::kF32, kPlenty)).minimum_bytes;
  BudgetRequest request = requestOf(least + 50000);
  ASSERT_EQ(StateFormat::kF16, choose(request).formats.state) << "or there is nothing to see";
  request.loss.state_f16 = 2 * request.loss.kl_limit;
  const Budget budget = choose(request);
  EXPECT_EQ(StateFormat::kF32, budget.formats.state);
  EXPECT_EQ(least, budget.minimum_bytes) << "what would do is told without it";
  request.fixed_state = true;
  request.formats.state = StateFormat::kF16;
  EXPECT_EQ(StateFormat::kF16, choose(request).formats.state);
  request.formats.state = StateFormat::kInt8;
  request.loss.state_int8 = 0.5;
  const Budget asked = choose(request);
  EXPECT_EQ(StateFormat::kInt8, asked.formats.state);
  EXPECT_GT(asked.loss, 0.5) << "and is counted";
}

}  // namespace
}  // namespace oriel_internal::test_state_budget
