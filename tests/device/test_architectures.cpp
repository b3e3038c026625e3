// Architectures beyond llama: any shape and any window against float64; local-window layers in snapshots, rewinds,
// formats and byte counts.
#include <gtest/gtest.h>

#include "support/against_float64.h"
#include "support/random_llama.h"
#include "support/reply.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_architectures {
namespace {

// ---- Against float64 -----------------------------------------------------------------------------

RUNS_ON(kCpu);
TEST(Architectures, streaming_past_every_window_equals_float64) {
  struct Setting {
    uint32_t sinks, window, chunk;
  };
  for (const std::string name : {"qwen2", "qwen3", "smollm3", "phi3", "gemma3"}) {
    RandomLlama model = name == "gemma3" ? smallGemma() : RandomLlama();
    model.architecture = name;
    model.n_layers = 5;
    const TemporaryModel file(model);
    const std::vector<int32_t> ids = someIds(70, static_cast<int32_t>(model.n_vocab));
    // Local windows of 8: shorter than the session's, equal, longer.
    for (const Setting s : {Setting{4, 20, 8}, Setting{0, 8, 1}, Setting{2, 3, 5}}) {
      expectReference(file.path(), s.sinks, s.window, s.chunk, ids, 2.5e-3);
    }
  }
}

RUNS_ON(kCpu);
TEST(Architectures, odd_shapes_equal_float64) {
  struct Shape {
    const char* architecture;
    uint32_t n_embd, n_heads, n_kv_heads, head_dim, n_ff, local_window, local_period;
    bool tied;
  };
  for (const Shape& s : {Shape{"gemma3", 60, 3, 1, 20, 100, 5, 2, true},
                         Shape{"gemma3", 33, 4, 2, 8, 50, 1, 6, false},
                         Shape{"gemma3", 48, 2, 2, 256, 31, 17, 1, true},
                         Shape{"qwen3", 100, 6, 3, 10, 172, 0, 0, true},
                         Shape{"qwen3", 20, 8, 1, 24, 77, 0, 0, false},
                         Shape{"smollm3", 50, 5, 5, 12, 33, 0, 0, true},
                         Shape{"phi3", 36, 3, 1, 12, 41, 0, 0, false},
                         Shape{"phi3", 96, 2, 2, 48, 20, 0, 0, true}}) {
    RandomLlama model;
    model.architecture = s.architecture;
    model.n_layers = 5;
    model.n_embd = s.n_embd;
    model.n_heads = s.n_heads;
    model.n_kv_heads = s.n_kv_heads;
    model.head_dim = s.head_dim;
    model.n_ff = s.n_ff;
    model.local_window = s.local_window;
    model.local_period = s.local_period;
    model.tied_output = s.tied;
    const TemporaryModel file(model);
    SCOPED_TRACE(s.head_dim);
    expectReference(file.path(), 3, 14, 6, someIds(40, static_cast<int32_t>(model.n_vocab)),
                    2.5e-3);
  }
}

TEST(Architectures, scaled_rope_equals_float64_past_the_window) {
  RandomLlama factors;
  factors.rope_freqs = {1, 1, 1.5f, 2, 4, 7.5f, 8, 8};
  RandomLlama linear;
  linear.rope_factor = 4;
  RandomLlama gemma = smallGemma();
  gemma.rope_factor = 8;  // of global layers only
  for (const RandomLlama& model : {factors, linear, gemma}) {
    const TemporaryModel file(model);
    expectReference(file.path(), 2, 20, 7, someIds(60, static_cast<int32_t>(model.n_vocab)),
                    2.5e-3);
  }
}

RUNS_ON(kCpu);
TEST(Architectures, layers_that_turn_unlike_shares_of_a_head_equal_float64_past_the_window) {
  RandomLlama unlike = smallGemma();
  unlike.rope_dims = 12;
  unlike.sliding_rope_dims = 8;
  RandomLlama only_sliding_in_part = smallGemma();
  only_sliding_in_part.sliding_rope_dims = 6;
  RandomLlama wider_sliding = smallGemma();
  wider_sliding.rope_dims = 4;
  wider_sliding.sliding_rope_dims = 16;
  RandomLlama mostly_unturned = smallGemma();  // Gemma 4's way of marking pairs that do not rotate
  mostly_unturned.rope_freqs = {1, 1, 1e30f, 1e30f, 1e30f, 1e30f, 1e30f, 1e30f};
  mostly_unturned.sliding_rope_dims = 8;
  RandomLlama neighbours;
  neighbours.rope_dims = 10;
  for (const RandomLlama& model :
       {unlike, only_sliding_in_part, wider_sliding, mostly_unturned, neighbours}) {
    SCOPED_TRACE(std::to_string(model.rope_dims) + " " + std::to_string(model.sliding_rope_dims));
    const TemporaryModel file(model);
    expectReference(file.path(), 2, 20, 7, someIds(60, static_cast<int32_t>(model.n_vocab)),
                    2.5e-3);
  }
}

RUNS_ON(kCpu);
TEST(Architectures, heads_of_unlike_sizes_in_one_model_equal_float64_past_the_window) {
  struct Sizes {
    uint32_t full, sliding;
  };
  for (const Sizes& sizes : {Sizes{512, 256}, Sizes{48, 40}, Sizes{64, 320}}) {
    SCOPED_TRACE(std::to_string(sizes.full) + " " + std::to_string(sizes.sliding));
    RandomLlama model;
    model.architecture = "gemma4";
    model.n_layers = 4;
    model.n_embd = 40;
    model.n_kv_heads = 1;
    model.head_dim = sizes.full;
    model.sliding_head_dim = sizes.sliding;
    model.slides_by_layer = {1, 0, 1, 0};
    model.local_window = 8;
    model.shared_layers = 1;
    model.rope_freqs = std::vector<float>(sizes.full / 2, 1e30f);
    std::fill_n(model.rope_freqs.begin(), sizes.full / 8, 1.0f);
    // Scores are not scaled.
    model.key_norm_gain =
        0.85f / std::sqrt(static_cast<float>(std::max(sizes.full, sizes.sliding)));
    const TemporaryModel file(model);
    expectReference(file.path(), 2, 20, 7, someIds(60, static_cast<int32_t>(model.n_vocab)),
                    2.5e-3);
  }
}

// ---- Local layers --------------------------------------------------------------------------------

RUNS_ON(kCpu);
TEST(LocalLayers, chunk_size_and_split_do_not_change_what_they_see) {
  RandomLlama gemma = smallGemma();
  gemma.local_window = 200;  // long enough to be split when it is decoded
  const TemporaryModel file(gemma);
  const std::vector<int32_t> ids = someIds(320, static_cast<int32_t>(gemma.n_vocab));
  const auto logitsWith = [&](uint32_t chunk) {
    const Loaded loaded = load(file.path(), windowOptions(4, 300, chunk));
    mustAppend(loaded, ids);
    return logitsOf(loaded);
  };
  const std::vector<float> want = logitsWith(64);
  for (const uint32_t chunk : {1u, 7u}) {
    EXPECT_LT(relativeL2(logitsWith(chunk), want), 1e-3) << "chunk " << chunk;
  }
}

TEST(LocalLayers, far_from_zero_is_as_exact_as_near_it) {
  const TemporaryModel file(smallGemma());
  const std::vector<int32_t> ids = someIds(40, 320);
  const auto rows =
      evaluate(load(file.path(), windowOptions(2, 20, 8), (uint64_t{1} << 40) + 12345), ids);
  Float64Model reference(file.path());
  for (size_t t = 0; t < ids.size(); ++t) {
    EXPECT_LT(relativeL2(rows[t], reference.step(ids[t], 2, 20)), 2.5e-3) << t;
  }
}

RUNS_ON(kCpu);
TEST(LocalLayers, every_device_agrees_with_the_reference_executor_in_every_format) {
  const TemporaryModel file(smallGemma());
  const std::vector<int32_t> ids = someIds(50, 320);
  for (const oriel_kv_format k : {ORIEL_KV_INT8, ORIEL_KV_INT4}) {
    for (const oriel_kv_format v : {ORIEL_KV_INT8, ORIEL_KV_INT4}) {
      Options options = windowOptions(3, 24, 8, k, v);
      const auto got = evaluate(load(file.path(), options), ids);
      options.device = "cpu";
      const auto want = evaluate(load(file.path(), options), ids);
      for (size_t t = 0; t < ids.size(); ++t) {
        // As in test_cache_formats.cpp: a last-bit difference may change a code.
        EXPECT_LT(relativeL2(got[t], want[t]), 0.03) << "k " << k << " v " << v << " token " << t;
      }
    }
  }
}

TEST(LocalLayers, their_rings_are_short_and_the_plan_says_so) {
  const TemporaryModel file(smallGemma());
  const FullPlan plan = planOf(load(file.path(), windowOptions(4, 100, 16)));
  EXPECT_EQ(4u, plan["groups"][1]["layers"]);
  EXPECT_EQ("sliding", plan["groups"][1]["kind"]);
  EXPECT_EQ(8u, plan["groups"][1]["window_tokens"]);
  EXPECT_EQ(8u + 16u - 1u, plan["groups"][1]["ring_tokens"]);
  EXPECT_EQ(115u, plan.count("ring_tokens"));
  // Two KV heads of 16 in f16; keys and values.
  const auto side = [](uint64_t slots) { return (slots * 2 * 16 * 2 + 255) / 256 * 256; };
  EXPECT_EQ((2 * (side(4 + 115) + 4 * side(23)) + 4095) / 4096 * 4096, plan.kv_bytes);
  EXPECT_EQ(2u * 2 * 16 * 2, plan.kv_bytes_per_token) << "one layer grows";
  EXPECT_EQ(4u * 8 * 2 * 2 * 16 * 2, plan["groups"][1]["bytes"]);
  // A session window below the local window limits the local layers, too.
  const FullPlan narrow = planOf(load(file.path(), windowOptions(2, 4, 3)));
  EXPECT_EQ(6u, narrow["groups"][1]["window_tokens"]);
  EXPECT_EQ(8u, narrow["groups"][1]["ring_tokens"]);
}

TEST(LocalLayers, a_model_of_nothing_else_needs_no_more_memory_for_a_longer_window) {
  RandomLlama gemma = smallGemma();
  gemma.n_layers = 2;  // the first global layer would be the third
  const TemporaryModel file(gemma);
  const FullPlan plan = planOf(load(file.path(), windowOptions(4, 100, 16)));
  EXPECT_EQ(2u, plan["groups"][1]["layers"]);
  EXPECT_EQ(0u, plan.kv_bytes_per_token);
  EXPECT_EQ(0u, plan.count("crossover_tokens"));
  EXPECT_EQ(plan.kv_bytes, planOf(load(file.path(), windowOptions(4, 400, 16))).kv_bytes);
}

RUNS_ON(kCpu);
TEST(LocalLayers, a_snapshot_goes_on_to_the_bit) {
  const TemporaryModel file(smallGemma());
  struct Case {
    oriel_kv_format format;
    size_t tokens;
  };
  // Before any wrap, between the wraps of local and global rings, and after both.
  for (const Case& c : {Case{ORIEL_KV_F16, 5}, Case{ORIEL_KV_F16, 150}, Case{ORIEL_KV_INT8, 40},
                        Case{ORIEL_KV_INT4, 150}}) {
    const Options options = windowOptions(4, 60, 8, c.format, c.format);
    const Loaded loaded = load(file.path(), options);
    mustAppend(loaded, someIds(c.tokens, 320));
    const std::vector<uint8_t> bytes = savedBytes(loaded.session.get());
    const auto expected = greedy(loaded, 70);
    const auto expected_logits = logitsOf(loaded);
    const Loaded fresh = load(file.path(), options);
    mustAppend(fresh, someIds(111, 300));
    ASSERT_EQ(ORIEL_OK, restoreFrom(fresh.session.get(), bytes));
    EXPECT_EQ(expected, greedy(fresh, 70)) << "format " << c.format << " after " << c.tokens;
    EXPECT_EQ(expected_logits, logitsOf(fresh));
  }
}

TEST(LocalLayers, rewinding_stops_where_their_ring_has_been_overwritten) {
  const TemporaryModel file(smallGemma());
  const std::vector<int32_t> ids = someIds(60, 320);
  const Options options = windowOptions(4, 100, 6);
  const Loaded loaded = load(file.path(), options);
  mustAppend(loaded, ids);
  // The global layers still have everything; the local ones 8 + 5 tokens.
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, goBackTo(loaded.session.get(), 53));
  EXPECT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), 54));
  mustAppend(loaded, {ids.begin() + 54, ids.end()});
  const auto again = logitsOf(loaded);
  const Loaded fresh = load(file.path(), options);
  mustAppend(fresh, ids);
  EXPECT_LT(relativeL2(again, logitsOf(fresh)), 1e-3);
  // Before the local ring wraps, any position is reachable.
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
  mustAppend(loaded, {ids.begin(), ids.begin() + 13});
  EXPECT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), 1));
}

TEST(LocalLayers, the_view_says_what_they_saw) {
  const TemporaryModel file(smallGemma());
  const Loaded loaded = load(file.path(), windowOptions(4, 20, 8));
  mustAppend(loaded, someIds(6, 320));
  EXPECT_EQ(0u, describe(loaded)["group_first_visible"][1]);
  mustAppend(loaded, someIds(44, 320));
  Json view = describe(loaded);
  EXPECT_EQ(50u, view["position"]);
  EXPECT_EQ(42u, view["group_first_visible"][1]);
  EXPECT_EQ(30u, view["first_visible"]);
}

TEST(LocalLayers, what_was_given_up_for_whole_turns_they_do_not_see_either) {
  RandomLlama gemma = smallGemma();
  gemma.local_window = 90;
  gemma.chat_template = kChatMlTemplate;
  const TemporaryModel file(gemma);
  Options options = windowOptions(4, 100, 16);
  options.device = "cpu";  // only indices matter here
  const Loaded loaded = load(file.path(), options);
  uint32_t bounded = 0;
  for (int turn = 0; turn < 12; ++turn) {
    // With its frame less than half the window: evicted as a whole turn.
    const std::string text = "in bytes" + std::string(turn % 4, '.');
    ASSERT_EQ(ORIEL_OK, oriel_chat_add(loaded.session.get(), "user", text.data(), text.size()));
    const oriel_stats view = statsOf(loaded);
    const uint64_t own = view.position > 90 ? view.position - 90 : 0;
    const bool evicted = view.position > 4 + 100;
    EXPECT_EQ(evicted ? std::max(own, view.first_visible) : own,
              describe(loaded)["group_first_visible"][1])
        << "turn " << turn;
    bounded += evicted && view.first_visible > own ? 1 : 0;
  }
  EXPECT_GT(bounded, 0u) << "the rule was never put to the test";
}

// ---- Windows of all layers -----------------------------------------------------------------------

TEST(Architectures, a_window_of_all_layers_bounds_the_window_that_is_chosen) {
  RandomLlama phi;
  phi.architecture = "phi3";
  phi.local_window = 130;
  const TemporaryModel file(phi);
  Options options = makeOptions();
  options.memory_bytes = 256u << 20;
  const Loaded loaded = load(file.path(), options);
  EXPECT_EQ(130u, planOf(loaded).window_tokens + planOf(loaded).sink_tokens);
  EXPECT_EQ(1u, planOf(loaded)["groups"].size());
}

// ---- Key guard -----------------------------------------------------------------------------------

RUNS_ON(kCpu);
TEST(Architectures, wide_key_norms_get_more_bits_and_the_plan_says_which_and_why) {
  const std::vector<int32_t> ids = someIds(120, 320);
  struct Case {
    float gain;
    oriel_kv_format int8_becomes, int4_becomes;
  };
  for (const Case& c :
       {Case{1, ORIEL_KV_INT8, ORIEL_KV_INT4}, Case{8, ORIEL_KV_INT8, ORIEL_KV_INT8},
        Case{120, ORIEL_KV_F16, ORIEL_KV_F16}}) {
    RandomLlama qwen;
    qwen.architecture = "qwen3";
    qwen.head_dim = 64;
    qwen.key_norm_gain = c.gain;
    const TemporaryModel file(qwen);
    const auto exact = evaluate(load(file.path(), windowOptions(4, 200, 8)), ids);
    for (const oriel_kv_format asked : {ORIEL_KV_INT8, ORIEL_KV_INT4}) {
      SCOPED_TRACE("gain " + std::to_string(c.gain) + " asked " + std::to_string(asked));
      const Loaded loaded = load(file.path(), windowOptions(4, 200, 8, asked, ORIEL_KV_F16));
      const oriel_kv_format want = asked == ORIEL_KV_INT8 ? c.int8_becomes : c.int4_becomes;
      const Json layers = describe(loaded.model)["layers"];
      EXPECT_EQ(formatName(want), layers.at(0).at("k_format"));
      EXPECT_EQ(formatName(want), layers.at(1).at("k_format"));
      const FullPlan plan = planOf(loaded);
      EXPECT_EQ(want == asked ? Json::array() : Json({0, 1}), plan["raised_by_norm"]);
      EXPECT_TRUE(plan["raised_by_bias"].empty());
      EXPECT_LT(meanDivergence(exact, evaluate(loaded, ids)), 0.05);
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_architectures
