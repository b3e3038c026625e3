// The share of states in plans and predicted speed of known shapes.
#include <gtest/gtest.h>

#include <cstring>

#include "speed/measure_speed.h"
#include "support/describe.h"
#include "tools/shape_weights.h"

namespace oriel_internal::test::test_state_shapes {
namespace {

/// Round numbers: 1 ns a Q4_0 weight, 2 ns a cached value (1 ns in a chunk).
DeviceSpeed roundSpeed(double read_bytes_per_s) {
  DeviceSpeed speed;
  std::memset(&speed, 0, sizeof(speed));
  speed.weight_count = 2;
  speed.weights[0] = {static_cast<uint32_t>(TensorType::kQ4_0), 0, 1.0, 0.5, 0.25, 0.8};
  speed.weights[1] = {static_cast<uint32_t>(TensorType::kF32), 0, 1.0, 0.5, 0.25, 0.8};
  speed.read_bytes_per_s = read_bytes_per_s;
  speed.cache_count = 1;
  speed.caches[0] = {KvFormat::kF16, KvFormat::kF16, {}, 2, 1, 0, 0};
  return speed;
}

struct Priced {
  Priced(const char* name, uint32_t chunk, double read_bytes_per_s,
         StateFormat format = StateFormat::kF32)
      : model(modelDescOf(*findShape(name))) {
    const WorkShape work = workOf(*findShape(name), model, WeightType::kQ4_0);
    CacheFormats formats;
    formats.state = format;
    EXPECT_TRUE(stepCost(roundSpeed(read_bytes_per_s), work, formats, chunk, &cost));
    const double n = chunk == 0 ? 1 : chunk;
    for (uint32_t i = 0; i < work.n_matrices; ++i) {
      const double body = static_cast<double>(work.matrices[i].body_weights);
      weights_s += 1e-9 * body * (chunk == 0 ? 1.0 : 0.5 + 0.25 * n);
    }
  }
  ModelDesc model;
  StepCost cost;
  double weights_s = 0;
};

constexpr double kValues08b = 18.0 * 16 * 128 * 128;  // of the states of Qwen3.5 0.8B
constexpr double kBytes08b = 4 * (kValues08b + 18.0 * 3 * 6144);

// A plan's description: one fixed state, and tokens at f16.
TEST(StateBytes, plans_say_what_states_and_tokens_of_a_window_take) {
  const struct {
    const char* name;
    double state_mib;
    uint64_t bytes_per_token;
  } rows[] = {
      {"qwen3.5-0.8b", 19.3, 12288}, {"qwen3.5-2b", 19.3, 12288}, {"qwen3.5-4b", 50.3, 32768}};
  for (const auto& row : rows) {
    Options options;
    options.device = "none";
    options.memory_bytes = uint64_t{16} << 30;
    options.window_tokens = 32768;
    options.set("kv", "f16");
    const FullPlan plan = planOfShape(row.name, options);
    EXPECT_EQ(row.bytes_per_token, plan.kv_bytes_per_token) << row.name;
    ASSERT_EQ(2u, plan["groups"].size());
    EXPECT_EQ("state", plan["groups"].at(1).at("kind"));
    const uint64_t state = plan["groups"].at(1).at("bytes_per_token");
    const double state_mib = static_cast<double>(state) / (1 << 20);
    EXPECT_NEAR(row.state_mib, state_mib, 0.05) << row.name;
    EXPECT_EQ(plan.count("state_bytes"), state * plan.count("state_slots")) << row.name;
    EXPECT_NE(0u, plan.weights_bytes) << row.name;
  }
}

TEST(StateSpeed, every_token_goes_through_the_state_whatever_the_depth) {
  const Priced decode("qwen3.5-0.8b", 0, 1e15);
  EXPECT_NEAR(decode.cost.weights_s, decode.weights_s + 1e-9 * kValues08b * 1.5 * 2, 1e-9);
  const Priced chunk("qwen3.5-0.8b", 32, 1e15);
  EXPECT_NEAR(chunk.cost.weights_s, chunk.weights_s + 1e-9 * kValues08b * 1.5 * 1 * 32, 1e-9);
  const Priced mamba("mamba2-130m", 0, 1e15);
  EXPECT_NEAR(mamba.cost.weights_s, mamba.weights_s + 1e-9 * 24 * 1536 * 128 * 2, 1e-9);
  EXPECT_EQ(stepSeconds(mamba.cost, 1e6), stepSeconds(mamba.cost, 0));
}

TEST(StateSpeed, a_state_is_read_and_written_once_a_step) {
  const double slow = 1e8;  // bytes a second: memory is the limit
  EXPECT_NEAR(Priced("qwen3.5-0.8b", 0, slow).cost.weights_s,
              Priced("qwen3.5-0.8b", 0, slow).weights_s + 2 * kBytes08b / slow, 1e-6);
  const double few_bits = Priced("qwen3.5-0.8b", 0, slow, StateFormat::kF16).cost.weights_s;
  EXPECT_NEAR(Priced("qwen3.5-0.8b", 0, slow).cost.weights_s - few_bits, 2 * 2 * kValues08b / slow,
              1e-6);
}

TEST(StateSpeed, attention_beside_a_state_counts_as_any_other) {
  const Priced falcon("falcon-h1-0.5b", 0, 1e15);
  EXPECT_NEAR(falcon.cost.seen[0].s_per_token, 1e-9 * 2 * 36 * 8 * 64, 1e-12);
}

TEST(StateSpeed, a_model_without_attention_is_stood_for_by_layers_that_have_some) {
  const ModelDesc model = modelDescOf(*findShape("mamba2-130m"));
  const ModelDesc falcon = modelDescOf(*findShape("falcon-h1-0.5b"));
  const auto target = [](const char* name, const ModelDesc& of) {
    return speedTargetOf(of, workOf(*findShape(name), of, WeightType::kQ4_0)).shape;
  };
  const ProbeShape probe = target("mamba2-130m", model);
  EXPECT_EQ(probe.n_embd, 768u);
  EXPECT_NE(probe.n_heads * probe.n_kv_heads * probe.head_dim * probe.n_ff, 0u);
  EXPECT_EQ(target("falcon-h1-0.5b", falcon).n_heads, 8u);
}

}  // namespace
}  // namespace oriel_internal::test::test_state_shapes
