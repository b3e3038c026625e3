// The architecture tables: the values they read from a file, and the files they refuse.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gguf/gguf.h"
#include "kv/memory.h"
#include "model/architecture.h"
#include "model/model_desc.h"
#include "plan/memory_layout.h"
#include "tests/support/captured_log.h"
#include "tests/support/describe.h"
#include "tests/support/model_mutants.h"
#include "tests/support/random_llama.h"

namespace oriel_internal::test_architectures {
namespace {

using test::Described;
using test::GgufWriter;
using test::TinyLlama;
using test::ValueType;

using Change = std::function<void(GgufWriter*)>;

/// A small model of any architecture with at least llama's tensors; heads of 8, 8 layers.
GgufWriter smallModel(const std::string& architecture) {
  TinyLlama shape;
  shape.n_layers = 8;
  const GgufWriter llama = shape.writer();
  GgufWriter out = llama;
  out.addString("general.architecture", architecture);
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, uint32_t>>{{"block_count", 8},
                                                     {"embedding_length", 32},
                                                     {"feed_forward_length", 64},
                                                     {"attention.head_count", 4},
                                                     {"attention.head_count_kv", 2},
                                                     {"context_length", 128}}) {
    out.addUint32(architecture + "." + key, value);
  }
  out.addFloat32(architecture + ".attention.layer_norm_rms_epsilon", 1e-6f);
  const auto vector = [&](const std::string& name, uint64_t size) {
    out.addTensor(name, 0, {size}, std::vector<uint8_t>(static_cast<size_t>(size) * 4));
  };
  for (uint32_t layer = 0; layer < shape.n_layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    if (architecture == "qwen3" || architecture == "gemma3") {
      vector(prefix + "attn_q_norm.weight", 8);
      vector(prefix + "attn_k_norm.weight", 8);
    }
    if (architecture == "gemma3") {
      vector(prefix + "post_attention_norm.weight", 32);
      vector(prefix + "post_ffw_norm.weight", 32);
    }
    if (architecture == "phi3") {
      for (const std::string name : {"attn_q", "attn_k", "attn_v", "ffn_gate"}) {
        out.removeTensor(prefix + name + ".weight");
      }
      TinyLlama::addMatrix(&out, prefix + "attn_qkv.weight", 64, 32);
      TinyLlama::addMatrix(&out, prefix + "ffn_up.weight", 128, 32);
    }
  }
  if (architecture == "gemma3") {
    out.addUint32("gemma3.attention.sliding_window", 16);
  }
  return out;
}

ModelDesc describe(const std::string& architecture, const Change& change = nullptr) {
  GgufWriter writer = smallModel(architecture);
  if (change) {
    change(&writer);
  }
  const Described described(writer);
  EXPECT_EQ(described.status, ORIEL_OK) << described.log.errors();
  return described.desc;
}

void expectRefused(const std::string& architecture, oriel_status status,
                   const std::vector<std::string>& words, const Change& change) {
  GgufWriter writer = smallModel(architecture);
  change(&writer);
  const Described described(writer);
  EXPECT_EQ(described.status, status) << described.log.errors();
  for (const std::string& word : words) {
    EXPECT_TRUE(described.log.says(word)) << "\"" << word << "\" in: " << described.log.errors();
  }
}

/// Window of the layers with a window of their own; 0: none.
uint32_t slidingWindow(const ModelDesc& desc) {
  for (uint32_t view = 0; view < desc.n_views; ++view) {
    if (desc.views[view].kind == ViewKind::kSliding) {
      return desc.views[view].window;
    }
  }
  return 0;
}

uint32_t slidingLayers(const ModelDesc& desc) {
  uint32_t count = 0;
  for (uint32_t layer = 0; layer < desc.n_layers; ++layer) {
    count += desc.slides(layer) ? 1 : 0;
  }
  return count;
}

// ---- Definitions ---------------------------------------------------------------------------------

TEST(Architectures, each_has_its_own_arithmetic) {
  for (const std::string name : {"llama", "qwen3", "gemma3", "smollm3", "phi3"}) {
    SCOPED_TRACE(name);
    const Described described(smallModel(name));
    ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
    const ModelDesc& desc = described.desc;
    const TensorIndex& tensors = described.tensors;
    EXPECT_EQ(desc.architecture, name);
    EXPECT_EQ(desc.embedding_scale, name == "gemma3" ? std::sqrt(32.0f) : 1.0f);
    EXPECT_EQ(desc.rope_pairing, name == "llama" || name == "smollm3" ? RopePairing::kInterleaved
                                                                      : RopePairing::kHalves);
    EXPECT_EQ(desc.ropes[kMainRope].dims, 8u);
    EXPECT_EQ(slidingLayers(desc), name == "gemma3" ? 7u : 0u);
    for (uint32_t layer = 0; layer < 8; ++layer) {
      SCOPED_TRACE(layer);
      EXPECT_EQ(desc.kind(layer).mixer, Mixer::kAttention);
      EXPECT_EQ(desc.kind(layer).activation, name == "gemma3" ? kGelu : kSilu);
      EXPECT_EQ(desc.kind(layer).attention_scale, 1.0f / std::sqrt(8.0f));
      EXPECT_EQ(tensors.has(TensorRole::kQueryNorm, layer), name == "qwen3" || name == "gemma3");
      EXPECT_EQ(tensors.has(TensorRole::kAttentionPostNorm, layer), name == "gemma3");
      EXPECT_EQ(tensors.has(TensorRole::kQkv, layer), name == "phi3");
      EXPECT_EQ(tensors.has(TensorRole::kQuery, layer), name != "phi3");
      EXPECT_EQ(desc.kind(layer).rope == kNoRope, name == "smollm3" && layer % 4 == 3);
    }
  }
}

TEST(Architectures, a_gemma_of_62_layers_scales_scores_by_its_width) {
  // Heads of 16, which is not width over heads.
  for (const uint32_t layers : {61u, 62u}) {
    GgufWriter writer = smallModel("gemma3");
    writer.addUint32("gemma3.block_count", layers);
    writer.addUint32("gemma3.attention.key_length", 16);
    for (uint32_t layer = 0; layer < layers; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      const auto matrix = [&](const std::string& name, uint64_t rows, uint64_t cols) {
        TinyLlama::addMatrix(&writer, prefix + name + ".weight", rows, cols);
      };
      matrix("attn_q", 64, 32);
      matrix("attn_k", 32, 32);
      matrix("attn_v", 32, 32);
      matrix("attn_output", 32, 64);
      matrix("ffn_gate", 64, 32);
      matrix("ffn_up", 64, 32);
      matrix("ffn_down", 32, 64);
      for (const std::string name :
           {"attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm"}) {
        writer.addTensor(prefix + name + ".weight", 0, {32}, std::vector<uint8_t>(128));
      }
      for (const std::string name : {"attn_q_norm", "attn_k_norm"}) {
        writer.addTensor(prefix + name + ".weight", 0, {16}, std::vector<uint8_t>(64));
      }
    }
    const Described described(writer);
    ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
    EXPECT_EQ(described.desc.kind(0).attention_scale,
              1.0f / std::sqrt(layers == 62 ? 8.0f : 16.0f));
  }
  EXPECT_EQ(
      describe("gemma3", [](GgufWriter* w) { w->addFloat32("gemma3.attention.scale", 0.25f); })
          .kind(0)
          .attention_scale,
      0.25f);
}

// ---- Local layers --------------------------------------------------------------------------------

std::string localPattern(const ModelDesc& desc) {
  std::string pattern;
  for (uint32_t layer = 0; layer < desc.n_layers; ++layer) {
    pattern += desc.slides(layer) ? 'l' : 'G';
  }
  return pattern;
}

void addBools(GgufWriter* writer, const std::string& key, const std::vector<bool>& values) {
  test::ByteWriter out;
  out.put<uint32_t>(static_cast<uint32_t>(ValueType::kBool));
  out.put<uint64_t>(values.size());
  for (const bool value : values) {
    out.put<uint8_t>(value ? 1 : 0);
  }
  writer->addRaw(key, static_cast<uint32_t>(ValueType::kArray), out.bytes);
}

TEST(Architectures, local_layers_follow_the_architecture_a_period_or_a_list) {
  const std::string key = "gemma3.attention.sliding_window_pattern";
  EXPECT_EQ(localPattern(describe("gemma3")), "lllllGll");
  EXPECT_EQ(localPattern(describe("gemma3", [&](GgufWriter* w) { w->addUint32(key, 2); })),
            "lGlGlGlG");
  EXPECT_EQ(localPattern(describe("gemma3", [&](GgufWriter* w) { w->addUint32(key, 1); })),
            "GGGGGGGG");
  EXPECT_EQ(localPattern(describe("gemma3", [&](GgufWriter* w) { w->addUint32(key, 512); })),
            "llllllll");
  EXPECT_EQ(localPattern(
                describe("gemma3",
                         [&](GgufWriter* w) {
                           addBools(w, key, {false, true, true, false, false, false, true, false});
                         })),
            "GllGGGlG");
  EXPECT_EQ(slidingWindow(describe("gemma3")), 16u);
  EXPECT_EQ(slidingWindow(describe("gemma3", [&](GgufWriter* w) { w->addUint32(key, 1); })), 0u)
      << "a window that no layer has";
}

TEST(Architectures, local_layers_have_a_base_of_their_own_that_no_scaling_touches) {
  const ModelDesc desc = describe("gemma3", [](GgufWriter* w) {
    w->addFloat32("gemma3.rope.freq_base", 1e6f);
    w->addString("gemma3.rope.scaling.type", "linear");
    w->addFloat32("gemma3.rope.scaling.factor", 8.0f);
  });
  EXPECT_EQ(desc.ropes[kMainRope].theta, 1e6);
  EXPECT_EQ(desc.ropes[kSlidingRope].theta, 1e4);
  EXPECT_EQ(desc.rope_scaling, RopeScaling::kLinear);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(desc.ropes[kMainRope].divisors[i], 8.0);
    EXPECT_EQ(desc.ropes[kSlidingRope].divisors[i], 1.0);
  }
  EXPECT_EQ(
      describe("gemma3", [](GgufWriter* w) { w->addFloat32("gemma3.rope.freq_base_swa", 5e4f); })
          .ropes[kSlidingRope]
          .theta,
      5e4);
}

TEST(Architectures, local_layers_may_turn_another_share_of_a_head) {
  const std::string full = "gemma3.rope.dimension_count";
  const std::string local = "gemma3.rope.dimension_count_swa";
  const auto dimsOf = [&](const std::function<void(GgufWriter*)>& change) {
    const ModelDesc desc = describe("gemma3", change);
    return std::pair(desc.ropes[kMainRope].dims, desc.ropes[kSlidingRope].dims);
  };
  EXPECT_EQ(dimsOf([](GgufWriter*) {}), std::pair(8u, 8u));
  EXPECT_EQ(dimsOf([&](GgufWriter* w) { w->addUint32(full, 6); }), std::pair(6u, 6u));
  EXPECT_EQ(dimsOf([&](GgufWriter* w) { w->addUint32(local, 4); }), std::pair(8u, 4u));
  EXPECT_EQ(dimsOf([&](GgufWriter* w) {
              w->addUint32(full, 2);
              w->addUint32(local, 8);
            }),
            std::pair(2u, 8u));
  for (const std::string& key : {full, local}) {
    for (const uint32_t bad : {3u, 10u}) {
      expectRefused("gemma3", ORIEL_ERROR_FORMAT, {key, "up to the head size 8"},
                    [&](GgufWriter* w) { w->addUint32(key, bad); });
    }
  }
}

TEST(Architectures, local_patterns_out_of_range_are_refused) {
  const std::string pattern = "gemma3.attention.sliding_window_pattern";
  const std::string window = "gemma3.attention.sliding_window";
  expectRefused("gemma3", ORIEL_ERROR_FORMAT, {pattern, " is 0"},
                [&](GgufWriter* w) { w->addUint32(pattern, 0); });
  expectRefused("gemma3", ORIEL_ERROR_FORMAT, {pattern, "513"},
                [&](GgufWriter* w) { w->addUint32(pattern, 513); });
  expectRefused("gemma3", ORIEL_ERROR_FORMAT, {pattern},
                [&](GgufWriter* w) { w->addString(pattern, "lllllG"); });
  expectRefused("gemma3", ORIEL_ERROR_FORMAT, {pattern, "7 entries for 8 layers"},
                [&](GgufWriter* w) { addBools(w, pattern, std::vector<bool>(7, true)); });
  expectRefused("gemma3", ORIEL_ERROR_FORMAT, {pattern, "booleans"},
                [&](GgufWriter* w) { w->addFloat32s(pattern, std::vector<float>(8, 1.0f)); });
  expectRefused("gemma3", ORIEL_ERROR_FORMAT, {window, "missing"},
                [&](GgufWriter* w) { w->removeKey(window); });
  expectRefused("gemma3", ORIEL_ERROR_FORMAT, {window, " is 0"},
                [&](GgufWriter* w) { w->addUint32(window, 0); });
  expectRefused("gemma3", ORIEL_ERROR_FORMAT, {window, "4194305"},
                [&](GgufWriter* w) { w->addUint32(window, kMaxWindow + 1); });
  expectRefused("gemma3", ORIEL_ERROR_FORMAT, {window},
                [&](GgufWriter* w) { w->addFloat32(window, 16.0f); });
}

TEST(Architectures, a_window_of_all_layers_bounds_what_a_query_was_trained_to_see) {
  for (const std::string name : {"llama", "phi3"}) {
    const ModelDesc desc = describe(
        name, [&](GgufWriter* w) { w->addUint32(name + ".attention.sliding_window", 47); });
    EXPECT_EQ(slidingLayers(desc), 0u);
    EXPECT_EQ(desc.context_train, 128u);
    EXPECT_EQ(desc.visibleTrain(), 47u);
    EXPECT_EQ(describe(name).visibleTrain(), 128u);
    EXPECT_EQ(
        describe(name,
                 [&](GgufWriter* w) { w->addUint32(name + ".attention.sliding_window", 262144); })
            .visibleTrain(),
        128u);
  }
}

TEST(Architectures, tokens_take_what_the_layers_without_a_window_of_their_own_were_given) {
  const ModelDesc desc = describe("gemma3");  // lllllGll
  CacheFormats formats;
  formats.k = formats.v = KvFormat::kInt4;
  formats.requireF16(2);
  formats.requireInt8(5);
  // One layer grows, and that one has int8 keys (two heads of 8, one scale each) and int4 values.
  EXPECT_EQ(memoryGrowth(desc, formats).per_token, 2u * (8 + 2) + 2u * (4 + 2));
}

// ---- Scaled RoPE ---------------------------------------------------------------------------------

TEST(RopeScaling, linear_scaling_divides_every_frequency) {
  const auto scaled = [](const std::string& key, float factor) {
    return describe("llama", [&](GgufWriter* w) { w->addFloat32(key, factor); });
  };
  EXPECT_EQ(scaled("llama.rope.scaling.factor", 4.0f).ropes[kMainRope].divisors[3], 4.0);
  EXPECT_EQ(scaled("llama.rope.scale_linear", 2.0f).ropes[kMainRope].divisors[0], 2.0);
  EXPECT_EQ(scaled("llama.rope.scaling.factor", 0.0f).rope_scaling, RopeScaling::kNone);
  EXPECT_EQ(scaled("llama.rope.scaling.factor", 1.0f).rope_scaling, RopeScaling::kNone);
}

TEST(RopeScaling, stored_factors_divide_each_frequency) {
  const ModelDesc desc = describe("llama", [](GgufWriter* w) {
    w->addTensorF32("rope_freqs.weight", {4}, {1, 1.5f, 4, 8});
  });
  EXPECT_EQ(desc.rope_scaling, RopeScaling::kFactors);
  EXPECT_EQ(desc.ropes[kMainRope].divisors[1], 1.5);
  EXPECT_EQ(desc.ropes[kMainRope].divisors[3], 8.0);
}

// Against figures worked out by hand from the paper: heads of 128, base 10000, trained on 2048 tokens,
// stretched 16 times. Pair i makes 2048 / (2 pi 10000^(i/64)) turns: more than 32 up to pair 16.1, fewer
// than 1 from pair 40.2 on.
TEST(RopeScaling, yarn_keeps_fast_pairs_stretches_slow_ones_and_warms_attention) {
  TinyLlama shape;
  shape.n_layers = 1;
  shape.n_embd = 256;
  shape.n_heads = 2;
  shape.n_kv_heads = 1;
  GgufWriter writer = shape.writer();
  writer.addString("llama.rope.scaling.type", "yarn");
  writer.addFloat32("llama.rope.scaling.factor", 16.0f);
  writer.addUint32("llama.rope.scaling.original_context_length", 2048);
  const Described described(writer);
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  const RopeTable& rope = described.desc.ropes[kMainRope];
  for (uint32_t i = 0; i <= 16; ++i) {
    EXPECT_DOUBLE_EQ(rope.divisors[i], 1.0) << i;
  }
  for (uint32_t i = 41; i < 64; ++i) {
    EXPECT_DOUBLE_EQ(rope.divisors[i], 16.0) << i;
  }
  EXPECT_NEAR(rope.divisors[28], 1 / (0.48 / 16 + 0.52), 1e-12);  // 12 of 25 steps
  EXPECT_NEAR(rope.magnitude, 1 + 0.1 * std::log(16.0), 1e-12);
  EXPECT_EQ(described.desc.rope_scaling, RopeScaling::kYarn);

  writer.addFloat32("llama.rope.scaling.attn_factor", 0.5f);
  writer.addFloat32("llama.rope.scaling.yarn_beta_fast", 1e9f);
  const Described other(writer);
  ASSERT_EQ(other.status, ORIEL_OK) << other.log.errors();
  EXPECT_NEAR(other.desc.ropes[kMainRope].magnitude, 0.5 * (1 + 0.1 * std::log(16.0)), 1e-12);
  EXPECT_GT(other.desc.ropes[kMainRope].divisors[16], 1.0);
}

TEST(RopeScaling, longrope_has_factors_for_short_and_for_long_caches) {
  const ModelDesc desc = describe("phi3", [](GgufWriter* w) {
    w->addTensorF32("rope_factors_short.weight", {4}, {1, 1, 2, 2});
    w->addTensorF32("rope_factors_long.weight", {4}, {1, 4, 8, 16});
    w->addUint32("phi3.rope.scaling.original_context_length", 64);
    w->addFloat32("phi3.rope.scaling.attn_factor", 1.19f);
  });
  EXPECT_EQ(desc.rope_scaling, RopeScaling::kLongrope);
  EXPECT_EQ(desc.mainRope(64).divisors[3], 2.0);
  EXPECT_EQ(desc.mainRope(65).divisors[3], 16.0);
  EXPECT_NEAR(desc.mainRope(64).magnitude, 1.19, 1e-7);
  EXPECT_NEAR(desc.mainRope(65).magnitude, 1.19, 1e-7);
}

TEST(RopeScaling, what_makes_no_sense_is_refused_by_name) {
  const std::string prefix = "llama.rope.scaling.";
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinite = std::numeric_limits<float>::infinity();
  for (const float value : {nan, infinite, -1.0f}) {
    for (const std::string type : {"linear", "yarn"}) {
      expectRefused("llama", ORIEL_ERROR_FORMAT, {prefix + "factor"}, [&](GgufWriter* w) {
        w->addString(prefix + "type", type);
        w->addFloat32(prefix + "factor", value);
      });
    }
    for (const std::string key :
         {"attn_factor", "yarn_ext_factor", "yarn_beta_fast", "yarn_beta_slow"}) {
      expectRefused("llama", ORIEL_ERROR_FORMAT, {prefix + key}, [&](GgufWriter* w) {
        w->addString(prefix + "type", "yarn");
        w->addFloat32(prefix + "factor", 4.0f);
        w->addFloat32(prefix + key, value);
      });
    }
    expectRefused("llama", ORIEL_ERROR_FORMAT, {"rope_freqs.weight", "positive"},
                  [&](GgufWriter* w) {
                    w->addTensorF32("rope_freqs.weight", {4}, {1, 1, value, 1});
                  });
    expectRefused("gemma3", ORIEL_ERROR_FORMAT, {"gemma3.rope.freq_base_swa"},
                  [&](GgufWriter* w) { w->addFloat32("gemma3.rope.freq_base_swa", value); });
  }
  expectRefused("llama", ORIEL_ERROR_FORMAT, {prefix + "factor", "missing"},
                [&](GgufWriter* w) { w->addString(prefix + "type", "linear"); });
  expectRefused("llama", ORIEL_ERROR_FORMAT, {prefix + "factor", "missing"},
                [&](GgufWriter* w) { w->addString(prefix + "type", "yarn"); });
  expectRefused("llama", ORIEL_ERROR_FORMAT, {prefix + "original_context_length", "0"},
                [&](GgufWriter* w) {
                  w->addString(prefix + "type", "yarn");
                  w->addFloat32(prefix + "factor", 4.0f);
                  w->addUint32(prefix + "original_context_length", 0);
                });
  expectRefused("llama", ORIEL_ERROR_UNSUPPORTED, {prefix + "type", "\"dynamic\""},
                [&](GgufWriter* w) { w->addString(prefix + "type", "dynamic"); });
  expectRefused("phi3", ORIEL_ERROR_FORMAT, {"rope_factors_long.weight is missing"},
                [](GgufWriter* w) { w->addString("phi3.rope.scaling.type", "longrope"); });
  expectRefused("phi3", ORIEL_ERROR_FORMAT, {"rope_factors_short.weight is missing"},
                [](GgufWriter* w) {
                  w->addTensorF32("rope_factors_long.weight", {4}, {1, 4, 8, 16});
                });
}

TEST(RopeScaling, factors_of_a_wrong_length_are_refused) {
  for (const uint64_t count : {1u, 3u, 5u, 8u}) {
    expectRefused("llama", ORIEL_ERROR_FORMAT, {"rope_freqs.weight", "ask for 1 rows of 4:"},
                  [&](GgufWriter* w) {
                    w->addTensorF32("rope_freqs.weight", {count},
                                    std::vector<float>(static_cast<size_t>(count), 1.0f));
                  });
    expectRefused("phi3", ORIEL_ERROR_FORMAT, {"rope_factors_long.weight", "ask for 1 rows of 4:"},
                  [&](GgufWriter* w) {
                    w->addTensorF32("rope_factors_long.weight", {count},
                                    std::vector<float>(static_cast<size_t>(count), 1.0f));
                  });
  }
}

// ---- Bad files -----------------------------------------------------------------------------------

TEST(Architectures, any_missing_tensor_and_any_wrong_shape_is_named) {
  for (const std::string architecture : {"qwen3", "gemma3", "smollm3", "phi3"}) {
    const GgufWriter whole = smallModel(architecture);
    const Described described(whole);
    ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
    GgufTensor tensor;
    uint64_t cursor = 0;
    while (described.file->nextTensor(&cursor, &tensor)) {
      const std::string name(tensor.name.data, tensor.name.bytes);
      if (name.find("blk.") == 0 && name.find("blk.5.") != 0) {
        continue;
      }
      expectRefused(architecture, ORIEL_ERROR_FORMAT, {"tensor " + name + " is missing"},
                    [&](GgufWriter* w) { w->removeTensor(name); });
      expectRefused(architecture, ORIEL_ERROR_FORMAT, {"tensor " + name + " ", "7 rows of 33"},
                    [&](GgufWriter* w) { TinyLlama::addMatrix(w, name, 7, 33); });
    }
  }
}

TEST(Architectures, what_is_missing_for_others_is_named) {
  const std::vector<std::pair<std::string, std::string>> needs = {
      {"phimoe", "mixture of experts"}, {"nobodymoe", "mixture of experts"},
      {"jamba", "state-space"},         {"clip", "images"},
      {"t5encoder", "encoder"},         {"mpt", "position biases"},
      {"starcoder", "a table"}};
  for (const auto& [name, what] : needs) {
    expectRefused("llama", ORIEL_ERROR_UNSUPPORTED, {"\"" + name + "\"", what, "gemma3"},
                  [&](GgufWriter* w) { w->addString("general.architecture", name); });
  }
  const std::vector<std::pair<std::string, std::string>> keys = {
      {"expert_count", "mixture of experts"},
      {"ssm.state_size", "state-space"},
      {"attention.kv_lora_rank", "latent attention"},
      {"final_logit_softcapping", "soft caps"}};
  for (const auto& [key, what] : keys) {
    expectRefused("llama", ORIEL_ERROR_UNSUPPORTED, {"llama." + key, what},
                  [&](GgufWriter* w) { w->addUint32("llama." + key, 8); });
  }
  const std::vector<std::pair<std::string, std::string>> tensors = {
      {"blk.0.ffn_gate_exps.weight", "mixture of experts"},
      {"blk.0.ssm_in.weight", "state-space"},
      {"blk.0.attn_kv_a_mqa.weight", "latent attention"},
      {"v.blk.0.attn_q.weight", "image"},
      {"position_embd.weight", "positions"}};
  for (const auto& [name, what] : tensors) {
    expectRefused("llama", ORIEL_ERROR_UNSUPPORTED, {"tensor " + name, what}, [&](GgufWriter* w) {
      w->addTensorF32(name, {4}, {1, 2, 3, 4});
    });
  }
}

}  // namespace
}  // namespace oriel_internal::test_architectures

namespace oriel_internal::test_new_architectures {

// Architectures of 2026: their special keys, and refused values.

namespace {

using test::CapturedLog;
using test::Described;
using test::GgufWriter;
using test::ValueType;

std::vector<uint8_t> bytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
std::string modelPath(const std::string& name) {
  return std::string(ORIEL_TEST_DATA "/models/") + name + ".gguf";
}
GgufWriter fileOf(const std::string& name) { return test::takeApart(bytesOf(modelPath(name))); }

void expectRefused(const std::string& name, const std::vector<std::string>& words,
                   const std::function<void(GgufWriter*)>& change) {
  GgufWriter writer = fileOf(name);
  change(&writer);
  const Described described(writer);
  EXPECT_NE(described.status, ORIEL_OK) << name << " " << words[0];
  for (const std::string& word : words) {
    EXPECT_TRUE(described.log.says(word)) << "\"" << word << "\" in: " << described.log.errors();
  }
}

void resize(GgufWriter* writer, const std::string& name, std::vector<uint64_t> dims) {
  uint64_t values = 1;
  for (const uint64_t dim : dims) {
    values *= dim;
  }
  writer->removeTensor(name);
  writer->addTensor(name, 0, dims, std::vector<uint8_t>(static_cast<size_t>(values) * 4));
}

TEST(NewArchitectures, there_are_more_than_seventy_that_write_text) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < architectureCount(); ++i) {
    const Traits& traits = architectureAt(i).traits;
    count += traits.drafts || traits.encoder ? 0 : 1;
  }
  EXPECT_GE(count, 70u);
}

TEST(NewArchitectures, counts_by_layer_have_one_for_each) {
  expectRefused("nemotron_h_moe-latent", {"feed_forward_length"}, [](GgufWriter* w) {
    w->addInt32s("nemotron_h_moe.feed_forward_length", {0, 32, 0});
  });
  expectRefused("lfm3", {"head_count_kv"}, [](GgufWriter* w) {
    w->addInt32s("lfm3.attention.head_count_kv", {0, 0, 2});
  });
  expectRefused("lfm3", {"sliding_window_pattern"}, [](GgufWriter* w) {
    w->addBools("lfm3.attention.sliding_window_pattern", {0, 1});
  });
}

TEST(NewArchitectures, experts_are_as_many_as_their_tensors_hold) {
  for (const uint32_t count : {0u, 7u, 4000u}) {
    expectRefused("gpt-oss-mxfp4", {count == 7 ? "ffn_gate_inp" : "expert_count"},
                  [&](GgufWriter* w) { w->addUint32("gpt-oss.expert_count", count); });
  }
  expectRefused("nemotron_h_moe-latent", {"expert_group"}, [](GgufWriter* w) {
    w->addUint32("nemotron_h_moe.expert_group_count", 4);
    w->addUint32("nemotron_h_moe.expert_group_used_count", 1);
  });
}

TEST(NewArchitectures, tensors_beside_matrices_fit_them) {
  expectRefused("gpt-oss-mxfp4", {"blk.1.attn_sinks.weight"},
                [](GgufWriter* w) { resize(w, "blk.1.attn_sinks.weight", {5}); });
  expectRefused("gpt-oss-mxfp4", {"blk.0.attn_sinks.weight", "missing"},
                [](GgufWriter* w) { w->removeTensor("blk.0.attn_sinks.weight"); });
  expectRefused("lfm3", {"blk.4.attn_gate.weight"}, [](GgufWriter* w) {
    resize(w, "blk.4.attn_gate.weight", {40, 3});
  });
  expectRefused("lfm3", {"post_ffw_norm.weight", "missing"}, [](GgufWriter* w) {
    for (int layer = 0; layer < 10; ++layer) {
      w->removeTensor("blk." + std::to_string(layer) + ".post_ffw_norm.weight");
    }
  });
  expectRefused("gemma4-moe-fused", {"ffn_down_exps.scale"},
                [](GgufWriter* w) { resize(w, "blk.0.ffn_down_exps.scale", {5}); });
  expectRefused("llama-q1_0", {"attn_q.scale"},
                [](GgufWriter* w) { resize(w, "blk.0.attn_q.scale", {2}); });
}

TEST(NewArchitectures, keys_that_must_be_there_are_named) {
  for (const char* key : {"attention.sliding_window", "attention.sliding_window_pattern"}) {
    expectRefused("lfm3", {key}, [&](GgufWriter* w) { w->removeKey(std::string("lfm3.") + key); });
  }
  expectRefused("phi2", {"layer_norm_epsilon"},
                [](GgufWriter* w) { w->removeKey("phi2.attention.layer_norm_epsilon"); });
  expectRefused("nanbeige-skip", {"num_loops"},
                [](GgufWriter* w) { w->addUint32("nanbeige.num_loops", 1000); });
}

TEST(NewArchitectures, limits_by_layer_that_clamp_experts_are_refused) {
  for (const float limit : {0.0f, 7.0f}) {
    GgufWriter writer = fileOf("gpt-oss-mxfp4");
    writer.addFloat32s("gpt-oss.swiglu_clamp_shexp", {0, 0, limit, 0});
    const Described described(writer);
    EXPECT_EQ(limit == 0, described.status == ORIEL_OK) << described.log.errors();
    EXPECT_EQ(limit != 0, described.log.says("swiglu_clamp_shexp"));
  }
}

TEST(NewArchitectures, delta_attention_has_bounded_gates_and_taps_of_each_matrix) {
  expectRefused("bailingmoe3-small", {"kda.safe_gate", "false"},
                [](GgufWriter* w) { w->addBool("bailingmoe3.kda.safe_gate", false); });
  for (const float bound : {0.0f, 1.0f, NAN}) {
    expectRefused("bailingmoe3-small", {"kda.gate_lower_bound"},
                  [&](GgufWriter* w) { w->addFloat32("bailingmoe3.kda.gate_lower_bound", bound); });
  }
  for (const uint32_t dim : {0u, 11u, 1000u}) {
    expectRefused("bailingmoe3-small", {dim == 11 ? "blk.0.attn_q.weight" : "kda.head_dim"},
                  [&](GgufWriter* w) { w->addUint32("bailingmoe3.kda.head_dim", dim); });
  }
  expectRefused("bailingmoe3-small", {"blk.2.ssm_conv1d_k.weight"}, [](GgufWriter* w) {
    resize(w, "blk.2.ssm_conv1d_k.weight", {3, 24});
  });
  // Without attention there are no latents to read.
  expectRefused("bailingmoe3-small", {"head_count_kv"}, [](GgufWriter* w) {
    w->addInt32s("bailingmoe3.attention.head_count_kv", {0, 0, 0, 0});
  });
}

// ---- Models in several files ---------------------------------------------------------------------

/// The model's tensors in `count` files.
class Parts {
 public:
  Parts(const std::string& model, uint16_t count)
      : folder_(std::filesystem::temp_directory_path() /
                ("oriel-parts-" + std::to_string(std::random_device()()))),
        count_(count) {
    std::filesystem::create_directories(folder_);
    const GgufWriter whole = fileOf(model);
    for (uint16_t part = 0; part < count; ++part) {
      GgufWriter writer = whole;
      auto& tensors = writer.tensors();
      const size_t all = tensors.size();
      const auto at = [&](size_t index) {
        return tensors.begin() + static_cast<std::ptrdiff_t>(index);
      };
      tensors.erase(at(all * (part + 1u) / count), tensors.end());
      tensors.erase(tensors.begin(), at(all * part / count));
      if (part != 0) {
        writer.keys().clear();
      }
      const auto add = [&](const char* key, ValueType type, auto value) {
        writer.addNumber(key, type, value);
      };
      add("split.no", ValueType::kUint16, part);
      add("split.count", ValueType::kUint16, count);
      add("split.tensors.count", ValueType::kInt32, static_cast<int32_t>(all));
      write(part, writer.build());
    }
  }
  ~Parts() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  std::string path(uint16_t part) const {
    char name[64];
    std::snprintf(name, sizeof(name), "m-%05d-of-%05d.gguf", part + 1, count_);
    return (folder_ / name).string();
  }
  void write(uint16_t part, const std::vector<uint8_t>& bytes) const {
    std::ofstream(path(part), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

 private:
  const std::filesystem::path folder_;
  const int count_;
};

struct Joined {
  explicit Joined(const std::string& path)
      : status(file.open(path.c_str(), allocator, log.log()).code()) {}
  const oriel_allocator allocator = defaultAllocator();
  CapturedLog log;
  ModelFile file;
  oriel_status status;
};

TEST(SplitModels, are_whole_by_the_name_of_any_part) {
  const Parts parts("phi2", 3);
  const std::vector<uint8_t> bytes = bytesOf(modelPath("phi2"));
  GgufFile whole;
  CapturedLog log;
  ASSERT_TRUE(whole.open(bytes.data(), bytes.size(), log.log()).ok());
  for (uint16_t part = 0; part < 3; ++part) {
    Joined joined(parts.path(part));
    ASSERT_EQ(ORIEL_OK, joined.status) << joined.log.errors();
    ASSERT_EQ(whole.tensorCount(), joined.file.gguf().tensorCount());
    GgufTensor want;
    for (uint64_t cursor = 0; whole.nextTensor(&cursor, &want);) {
      const std::string name(want.name.data, want.name.bytes);
      GgufTensor got;
      ASSERT_TRUE(joined.file.gguf().findTensor(name.c_str(), &got));
      ASSERT_EQ(want.bytes, got.bytes);
      std::vector<uint8_t> read(static_cast<size_t>(got.bytes));
      ASSERT_TRUE(joined.file.read(got.offset, read.data(), got.bytes, joined.log.log()).ok());
      EXPECT_EQ(0, std::memcmp(bytes.data() + want.offset, read.data(), read.size())) << name;
    }
  }
}

TEST(SplitModels, that_are_not_whole_are_refused_in_one_line) {
  const auto expect = [](const std::string& path, const std::vector<std::string>& words) {
    const Joined joined(path);
    EXPECT_NE(ORIEL_OK, joined.status);
    for (const std::string& word : words) {
      EXPECT_TRUE(joined.log.says(word)) << word << " in: " << joined.log.errors();
    }
  };
  {
    const Parts parts("phi2", 3);
    std::remove(parts.path(0).c_str());
    std::remove(parts.path(2).c_str());
    expect(parts.path(1), {"2 are missing", "m-00001-of-00003.gguf", "m-00003-of-00003.gguf"});
  }
  {
    const Parts parts("phi2", 2);
    const Parts other("nanbeige-skip", 2);
    parts.write(1, bytesOf(other.path(1)));
    expect(parts.path(0), {"m-00002-of-00002.gguf", "same model"});
    parts.write(1, bytesOf(parts.path(0)));
    expect(parts.path(0), {"m-00002-of-00002.gguf", "same model"});
  }
  {
    const Parts parts("phi2", 2);
    const std::string renamed = parts.path(0) + ".gguf";
    ASSERT_EQ(0, std::rename(parts.path(0).c_str(), renamed.c_str()));
    expect(renamed, {"part 1 of 2", "-00001-of-00002.gguf"});
  }
}

}  // namespace
}  // namespace oriel_internal::test_new_architectures
