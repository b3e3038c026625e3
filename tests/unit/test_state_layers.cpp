// Files with state layers: their contents, and refused ones.
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/random_families.h"
#include "tests/support/described.h"

namespace oriel_internal::test::test_state_layers {
namespace {

using Change = std::function<void(GgufWriter*)>;

void expectRefused(const std::string& family, oriel_status status, const std::string& part,
                   const Change& change) {
  SCOPED_TRACE(family + ": " + part);
  GgufWriter file = randomFamily(family).writer();
  change(&file);
  const Described described(file);
  EXPECT_EQ(described.status, status);
  EXPECT_TRUE(described.log.says(part)) << described.log.errors();
  EXPECT_EQ(std::string::npos, described.log.errors().find('\n')) << described.log.errors();
}

ModelDesc describe(const std::string& family, const Change& change) {
  GgufWriter file = randomFamily(family).writer();
  change(&file);
  const Described described(file);
  EXPECT_EQ(described.status, ORIEL_OK) << family << ": " << described.log.errors();
  return described.desc;
}

std::string mixersOf(const ModelDesc& desc) {
  std::string all;
  for (uint32_t layer = 0; layer < desc.n_layers; ++layer) {
    all += "acsb"[static_cast<size_t>(desc.kind(layer).mixer)];
  }
  return all;
}

const char* const kFamilies[] = {"qwen35", "granitehybrid", "falcon-h1", "mamba2"};

std::string keyOf(const std::string& family, const std::string& suffix) {
  return randomFamily(family).architecture + "." + suffix;
}

// ---- Valid files ---------------------------------------------------------------------------------

TEST(StateLayers, shapes_of_states_are_the_files_own) {
  for (const char* family : kFamilies) {
    SCOPED_TRACE(family);
    const RandomState want = randomFamily(family).state;
    const ModelDesc desc = describe(family, [](GgufWriter*) {});
    ASSERT_TRUE(desc.keepsStates());
    for (uint32_t layer = 0; layer < desc.n_layers; ++layer) {
      const LayerKind& kind = desc.kind(layer);
      const StateShape& state = kind.state;
      if (!kind.keepsState()) {
        EXPECT_EQ(state.rule, StateRule::kNone);
        EXPECT_EQ(kind.state_words, 0u);
        continue;
      }
      EXPECT_EQ(state.rule, want.delta ? StateRule::kDelta : StateRule::kMamba2);
      EXPECT_EQ(state.heads, want.heads);
      EXPECT_EQ(state.key_heads, want.key_heads);
      EXPECT_EQ(state.key_dim, want.key_dim);
      EXPECT_EQ(state.value_dim, want.value_dim);
      EXPECT_EQ(state.conv_taps, want.taps);
      EXPECT_EQ(state.normed, want.normed);
      EXPECT_EQ(kind.state_words,
                want.heads * want.key_dim * want.value_dim + (want.taps - 1) * want.channels());
      EXPECT_EQ(desc.views[kind.viewOfState()].kind, ViewKind::kState);
      EXPECT_EQ(kind.attends(), want.beside);
    }
  }
}

TEST(StateLayers, which_layers_keep_one) {
  const auto nothing = [](GgufWriter*) {};
  EXPECT_EQ(mixersOf(describe("qwen35", nothing)), "sssasssa");
  EXPECT_EQ(mixersOf(describe("qwen35 of a list of layers", nothing)), "assas");
  EXPECT_EQ(mixersOf(describe("granitehybrid", nothing)), "sassa");
  EXPECT_EQ(mixersOf(describe("falcon-h1", nothing)), "bbb");
  EXPECT_EQ(mixersOf(describe("mamba2", nothing)), "ssss");
}

TEST(StateLayers, layers_for_further_tokens_are_not_run) {
  const ModelDesc desc = describe("qwen35 of a list of layers", [](GgufWriter*) {});
  EXPECT_EQ(desc.n_layers, 5u);
  EXPECT_EQ(desc.extra_layers, 2u);
}

TEST(StateLayers, an_interval_that_the_file_states_counts) {
  RandomLlama model = randomFamily("qwen35");
  model.state.interval = 3;
  const Described described(model.writer());
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  EXPECT_EQ(mixersOf(described.desc), "ssassass");
}

TEST(StateLayers, a_model_may_be_all_states) {
  RandomLlama model = randomFamily("qwen35");
  model.n_layers = 3;
  const Described short_one(model.writer());
  ASSERT_EQ(short_one.status, ORIEL_OK) << short_one.log.errors();
  EXPECT_EQ(mixersOf(short_one.desc), "sss");
  model = randomFamily("granitehybrid");
  model.kv_heads_by_layer = {0, 0, 0, 0, 0};
  const Described hybrid(model.writer());
  ASSERT_EQ(hybrid.status, ORIEL_OK) << hybrid.log.errors();
  EXPECT_EQ(mixersOf(hybrid.desc), "sssss");
}

TEST(StateLayers, a_hybrid_may_be_all_attention_and_then_says_nothing_of_states) {
  RandomLlama model = randomFamily("granitehybrid");
  model.kv_heads_by_layer = {};
  model.state = {};
  model.no_rope = false;
  const Described described(model.writer());
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  EXPECT_EQ(mixersOf(described.desc), "aaaaa");
  EXPECT_FALSE(described.desc.keepsStates());
  EXPECT_TRUE(described.desc.usesRope(kMainRope));
}

TEST(StateLayers, harmless_keys_of_converters_change_nothing) {
  const auto alike = [](const std::string& family, const Change& change) {
    SCOPED_TRACE(family);
    const ModelDesc want = describe(family, [](GgufWriter*) {});
    const ModelDesc got = describe(family, change);
    EXPECT_EQ(mixersOf(got), mixersOf(want));
    EXPECT_EQ(got.n_heads, want.n_heads);
    EXPECT_EQ(got.n_kv_heads, want.n_kv_heads);
    EXPECT_EQ(got.head_dim, want.head_dim);
    EXPECT_EQ(got.n_kinds, want.n_kinds);
    EXPECT_EQ(got.ropes[kMainRope].dims, want.ropes[kMainRope].dims);
  };
  // Zeros for the layers that have no heads of keys.
  alike("qwen35", [](GgufWriter* f) {
    f->addInt32s("qwen35.attention.head_count_kv", {0, 0, 0, 2, 0, 0, 0, 2});
  });
  alike("qwen35", [](GgufWriter* f) {
    f->addInt32s("qwen35.attention.head_count", {0, 0, 0, 4, 0, 0, 0, 4});
  });
  // Rotations of models that have none.
  alike("granitehybrid", [](GgufWriter* f) {
    f->addUint32("granitehybrid.rope.dimension_count", 16);
    f->addFloat32("granitehybrid.rope.freq_base", 1e4f);
    f->addUint32("granitehybrid.expert_count", 0);
    f->addUint32("granitehybrid.expert_used_count", 0);
    f->addUint32("granitehybrid.expert_shared_feed_forward_length", 96);
  });
  for (const char* suffix : {"attention.head_count", "attention.head_count_kv",
                             "feed_forward_length", "rope.dimension_count", "vocab_size"}) {
    alike("mamba2", [&](GgufWriter* f) {
      f->addUint32(std::string("mamba2.") + suffix,
                   std::string(suffix) == "vocab_size" ? randomFamily("mamba2").n_vocab : 0);
    });
    if (std::string(suffix) != "vocab_size") {
      alike("mamba2", [&](GgufWriter* f) { f->removeKey(std::string("mamba2.") + suffix); });
    }
  }
  alike("mamba2", [](GgufWriter* f) { f->addFloat32("mamba2.rope.freq_base", 1e4f); });
  for (const char* family : kFamilies) {  // derived values of old converters
    alike(family, [](GgufWriter* f) {
      f->addTensorF32("blk.0.attn_rot_embd.weight", {8}, std::vector<float>(8));
    });
  }
  // Convolutions may lack a bias.
  for (const char* family : {"granitehybrid", "falcon-h1", "mamba2"}) {
    alike(family, [](GgufWriter* f) {
      for (int layer = 0; layer < 5; ++layer) {
        f->removeTensor("blk." + std::to_string(layer) + ".ssm_conv1d.bias");
      }
    });
  }
}

TEST(StateLayers, a_context_that_stands_for_none_is_not_taken_for_one) {
  for (const char* family : kFamilies) {
    const std::string key = keyOf(family, "context_length");
    const bool stands_for_none =
        std::string(family) == "granitehybrid" || std::string(family) == "mamba2";
    EXPECT_EQ(describe(family, [&](GgufWriter* f) { f->addUint32(key, 1 << 20); }).context_train,
              stands_for_none ? 0u : 1u << 20);
    EXPECT_EQ(describe(family, [&](GgufWriter* f) { f->addUint32(key, 131072); }).context_train,
              131072u);
  }
}

TEST(StateLayers, pairs_that_no_section_covers_do_not_turn) {
  const auto turns = [](const std::vector<int32_t>& sections) {
    const ModelDesc desc = describe(
        "qwen35", [&](GgufWriter* f) { f->addInt32s("qwen35.rope.dimension_sections", sections); });
    std::string pairs;
    for (uint32_t i = 0; i < desc.ropes[kMainRope].dims / 2; ++i) {
      pairs += desc.ropes[kMainRope].divisors[i] > 1e20 ? '-' : 't';
    }
    return pairs;
  };
  EXPECT_EQ(turns({2, 1, 1, 0}), "tttt");
  EXPECT_EQ(turns({1, 1, 1, 1}), "ttt-");
  EXPECT_EQ(turns({1, 0, 1, 0}), "t-t-");
  EXPECT_EQ(turns({0, 0, 0, 4}), "----");
  EXPECT_EQ(turns({99, 99, 99, 0}), "tttt");
}

// ---- Refused files -------------------------------------------------------------------------------

TEST(StateLayers, a_number_that_is_missing_or_out_of_range_is_named) {
  struct Number {
    const char* suffix;
    std::vector<uint64_t> wrong;
  };
  const Number numbers[] = {{"ssm.conv_kernel", {0, 1, 9, 1ull << 32, UINT64_MAX}},
                            {"ssm.state_size", {0, 1, 257, 1ull << 40}},
                            {"ssm.time_step_rank", {0, 1025, UINT64_MAX}},
                            {"ssm.group_count", {0, 9, 1ull << 33}},
                            {"ssm.inner_size", {0, (1u << 19) + 1, UINT64_MAX}}};
  for (const char* family : kFamilies) {
    for (const Number& number : numbers) {
      const std::string key = keyOf(family, number.suffix);
      expectRefused(family, ORIEL_ERROR_FORMAT, key + " is missing",
                    [&](GgufWriter* f) { f->removeKey(key); });
      for (const uint64_t value : number.wrong) {
        GgufWriter file = randomFamily(family).writer();
        file.addUint64(key, value);
        const Described described(file);
        EXPECT_NE(described.status, ORIEL_OK) << key << " " << value;
        EXPECT_TRUE(described.log.says(key + " is " + std::to_string(value)))
            << value << ": " << described.log.errors();
      }
      expectRefused(family, ORIEL_ERROR_FORMAT, key,
                    [&](GgufWriter* f) { f->addString(key, "4"); });
    }
  }
}

TEST(StateLayers, numbers_that_do_not_divide_are_named) {
  for (const char* family : kFamilies) {
    const RandomState state = randomFamily(family).state;
    const std::string inner = keyOf(family, "ssm.inner_size");
    expectRefused(family, ORIEL_ERROR_FORMAT,
                  inner + " is " + std::to_string(state.values() + 1) + ", not a multiple of " +
                      keyOf(family, "ssm.time_step_rank"),
                  [&](GgufWriter* f) { f->addUint32(inner, state.values() + 1); });
    expectRefused(
        family, ORIEL_ERROR_FORMAT, "not a multiple of " + keyOf(family, "ssm.group_count"),
        [&](GgufWriter* f) { f->addUint32(keyOf(family, "ssm.group_count"), state.heads - 1); });
    expectRefused(family, ORIEL_ERROR_UNSUPPORTED, "heads of states have 257 values",
                  [&](GgufWriter* f) { f->addUint32(inner, 257 * state.heads); });
  }
}

TEST(StateLayers, a_state_that_is_too_large_is_refused) {
  for (const char* family : kFamilies) {
    expectRefused(family, ORIEL_ERROR_UNSUPPORTED, "the state of layer", [&](GgufWriter* f) {
      f->addUint32(keyOf(family, "ssm.time_step_rank"), 1024);
      f->addUint32(keyOf(family, "ssm.group_count"), 1);
      f->addUint32(keyOf(family, "ssm.state_size"), 256);
      f->addUint32(keyOf(family, "ssm.inner_size"), 1u << 18);
    });
  }
}

TEST(StateLayers, numbers_that_the_tensors_do_not_have_are_named) {
  const auto wrong = [](const std::string& family, const std::string& suffix, uint32_t value,
                        const std::string& tensor) {
    expectRefused(family, ORIEL_ERROR_FORMAT, tensor,
                  [&](GgufWriter* f) { f->addUint32(keyOf(family, suffix), value); });
  };
  for (const char* family : kFamilies) {
    wrong(family, "ssm.conv_kernel", 3, "ssm_conv1d.weight has");
    wrong(family, "ssm.state_size", 16 + (std::string(family) == "mamba2" ? 1 : 0), ".weight has");
  }
}

TEST(StateLayers, lists_and_intervals_that_make_no_sense_are_named) {
  const std::string list = "qwen35.attention.recurrent_layers";
  for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{9}, size_t{600}}) {
    expectRefused("qwen35", ORIEL_ERROR_FORMAT,
                  list + " has " + std::to_string(count) + " entries for 8 layers",
                  [&](GgufWriter* f) { f->addBools(list, std::vector<uint8_t>(count, 1)); });
  }
  expectRefused("qwen35", ORIEL_ERROR_FORMAT, list + " is not a list of booleans",
                [&](GgufWriter* f) {
                  f->addInt32s(list, {1, 1, 1, 0, 1, 1, 1, 0});
                });
  // The list includes layers that are not run.
  expectRefused("qwen35 of a list of layers", ORIEL_ERROR_FORMAT, list + " has 5 entries for 7",
                [&](GgufWriter* f) {
                  f->addBools(list, {0, 1, 1, 0, 1});
                });
  const std::string interval = "qwen35.full_attention_interval";
  for (const uint32_t value : {0u, 513u, UINT32_MAX}) {
    expectRefused("qwen35", value == 0 ? ORIEL_ERROR_FORMAT : ORIEL_ERROR_UNSUPPORTED,
                  interval + " is " + std::to_string(value),
                  [&](GgufWriter* f) { f->addUint32(interval, value); });
  }
  const std::string extra = "qwen35.nextn_predict_layers";
  for (const uint32_t value : {8u, 9u, UINT32_MAX}) {
    expectRefused("qwen35", ORIEL_ERROR_UNSUPPORTED, extra + " is " + std::to_string(value),
                  [&](GgufWriter* f) { f->addUint32(extra, value); });
  }
}

TEST(StateLayers, attention_without_heads_of_keys_is_refused) {
  expectRefused("qwen35", ORIEL_ERROR_FORMAT,
                "qwen35.attention.head_count_kv is 0 in layer 3, which has attention",
                [](GgufWriter* f) { f->addUint32("qwen35.attention.head_count_kv", 0); });
  expectRefused("qwen35", ORIEL_ERROR_FORMAT, "qwen35.attention.head_count_kv is 0 in layer 7",
                [](GgufWriter* f) {
                  f->addInt32s("qwen35.attention.head_count_kv", {0, 0, 0, 2, 0, 0, 0, 0});
                });
  expectRefused("falcon-h1", ORIEL_ERROR_FORMAT,
                "falcon-h1.attention.head_count_kv is 0 in layer 0, which has attention",
                [](GgufWriter* f) { f->addUint32("falcon-h1.attention.head_count_kv", 0); });
}

TEST(StateLayers, sections_that_are_none_are_named) {
  const std::string key = "qwen35.rope.dimension_sections";
  expectRefused("qwen35", ORIEL_ERROR_FORMAT, key + " is missing",
                [&](GgufWriter* f) { f->removeKey(key); });
  for (const std::vector<int32_t>& sections :
       std::vector<std::vector<int32_t>>{{}, {4}, {2, 1, 1}, {2, 1, 1, 0, 0}, {-1, 2, 2, 0}}) {
    expectRefused("qwen35", ORIEL_ERROR_FORMAT, key + " is not a list of 4 whole numbers",
                  [&](GgufWriter* f) { f->addInt32s(key, sections); });
  }
  expectRefused("qwen35", ORIEL_ERROR_FORMAT, key + " is not a list of 4 whole numbers",
                [&](GgufWriter* f) { f->addUint32(key, 4); });
  const std::string dims = "qwen35.rope.dimension_count";
  for (const uint32_t value : {5u, 18u}) {
    expectRefused("qwen35", ORIEL_ERROR_FORMAT, dims + " is " + std::to_string(value),
                  [&](GgufWriter* f) { f->addUint32(dims, value); });
  }
}

TEST(StateLayers, norms_of_states_are_optional_in_falcon_h1_alone) {
  for (const char* family : {"qwen35", "granitehybrid", "mamba2"}) {
    expectRefused(family, ORIEL_ERROR_FORMAT, "tensor blk.0.ssm_norm.weight is missing",
                  [](GgufWriter* f) { f->removeTensor("blk.0.ssm_norm.weight"); });
  }
  const char* const falcon = "falcon-h1 with a norm and without a bias";
  expectRefused(falcon, ORIEL_ERROR_FORMAT, "tensor blk.1.ssm_norm.weight is missing",
                [](GgufWriter* f) { f->removeTensor("blk.1.ssm_norm.weight"); });
  expectRefused(falcon, ORIEL_ERROR_FORMAT,
                "tensor blk.1.ssm_norm.weight is there, but layer 0 has no such norm",
                [](GgufWriter* f) { f->removeTensor("blk.0.ssm_norm.weight"); });
}

TEST(StateLayers, tensors_of_the_other_kind_of_layer_are_refused) {
  const auto added = [](const std::string& family, const std::string& name,
                        const std::string& part) {
    expectRefused(family, ORIEL_ERROR_FORMAT, "tensor " + name + " is there, but " + part,
                  [&](GgufWriter* f) { f->addTensorF32(name, {4}, std::vector<float>(4)); });
  };
  added("qwen35", "blk.3.ssm_a",
        "qwen35.full_attention_interval makes layer 3 one of attention: convert the model again");
  added("qwen35", "blk.0.attn_q.weight",
        "qwen35.full_attention_interval makes layer 0 one of states");
  added("qwen35 of a list of layers", "blk.1.attn_k_norm.weight",
        "qwen35.attention.recurrent_layers makes layer 1 one of states");
  added("granitehybrid", "blk.1.ssm_out.weight",
        "granitehybrid.attention.head_count_kv makes layer 1 one of attention");
  added("granitehybrid", "blk.0.attn_v.weight",
        "granitehybrid.attention.head_count_kv makes layer 0 one of states");
  added("granitehybrid", "blk.0.ffn_gate_inp.weight",
        "the file's own numbers give layer 0 no experts");
  expectRefused("qwen35", ORIEL_ERROR_UNSUPPORTED, "tensor blk.0.ssm_conv1d.bias",
                [](GgufWriter* f) {
                  f->addTensorF32("blk.0.ssm_conv1d.bias", {112}, std::vector<float>(112));
                });
  expectRefused("mamba2", ORIEL_ERROR_UNSUPPORTED, "tensor blk.0.attn_q.weight", [](GgufWriter* f) {
    f->addTensorF32("blk.0.attn_q.weight", {64, 64}, std::vector<float>(4096));
  });
  expectRefused("falcon-h1", ORIEL_ERROR_UNSUPPORTED, "tensor blk.0.ffn_norm.weight",
                [](GgufWriter* f) {
                  f->addTensorF32("blk.0.ffn_norm.weight", {64}, std::vector<float>(64));
                });
}

}  // namespace
}  // namespace oriel_internal::test::test_state_layers
