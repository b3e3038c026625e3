#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/arena.h"
#include "gguf/gguf.h"
#include "model/model_desc.h"
#include "support/describe.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/float64_model.h"
#include "support/golden.h"
#include "support/random_families.h"
#include "support/target.h"
#include "tests/support/captured_log.h"
#include "tests/support/describe.h"
#include "tests/support/files.h"
#include "tests/support/random_llama.h"

namespace oriel_internal::test_model_desc {
namespace {

using test::CapturedLog;
using test::Described;
using test::GgufWriter;
using test::TinyLlama;
using test::ValueType;

/// A tiny llama with one change must be refused, with a message that has these words in it.
void expectRefused(oriel_status status, const std::vector<std::string>& words,
                   const std::function<void(GgufWriter*)>& change) {
  GgufWriter writer = TinyLlama().writer();
  change(&writer);
  const Described described(writer);
  EXPECT_EQ(described.status, status) << described.log.errors();
  for (const std::string& word : words) {
    EXPECT_TRUE(described.log.says(word)) << "\"" << word << "\" in: " << described.log.errors();
  }
}

// --- Valid files ----------------------------------------------------------------------------------

TEST(ModelDesc, a_small_llama_is_described) {
  const Described described(TinyLlama().writer());
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  const ModelDesc& desc = described.desc;
  EXPECT_STREQ(desc.architecture, "llama");
  EXPECT_EQ(desc.n_layers, 2u);
  EXPECT_EQ(desc.n_embd, 32u);
  EXPECT_EQ(desc.n_heads, 4u);
  EXPECT_EQ(desc.n_kv_heads, 2u);
  EXPECT_EQ(desc.head_dim, 8u);
  EXPECT_EQ(desc.n_ff, 64u);
  EXPECT_EQ(desc.n_vocab, 16u);
  EXPECT_EQ(desc.context_train, 128u);
  EXPECT_EQ(desc.ropes[kMainRope].dims, 8u);
  EXPECT_EQ(desc.rope_pairing, RopePairing::kInterleaved);
  EXPECT_EQ(desc.ropes[kMainRope].theta, 10000.0);
  EXPECT_EQ(desc.rms_eps, 1e-5f);
  EXPECT_TRUE(desc.tied_output);
}

TEST(ModelDesc, optional_numbers_replace_the_defaults) {
  GgufWriter writer = TinyLlama().writer();
  writer.addUint32("llama.attention.key_length", 16);
  writer.addUint32("llama.attention.value_length", 16);
  writer.addUint32("llama.rope.dimension_count", 12);
  writer.addFloat32("llama.rope.freq_base", 500000.0f);
  writer.addUint32("llama.vocab_size", 16);
  writer.addString("llama.rope.scaling.type", "none");
  writer.addFloat32("llama.rope.scaling.factor", 8.0f);
  writer.addUint32("llama.expert_count", 0);
  writer.addStrings("tokenizer.ggml.tokens", std::vector<std::string>(16, "t"));
  writer.removeKey("llama.context_length");
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    TinyLlama::addMatrix(&writer, layer + "attn_q.weight", 64, 32);
    TinyLlama::addMatrix(&writer, layer + "attn_k.weight", 32, 32);
    TinyLlama::addMatrix(&writer, layer + "attn_v.weight", 32, 32);
    TinyLlama::addMatrix(&writer, layer + "attn_output.weight", 32, 64);
  }
  const Described described(writer);
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  EXPECT_EQ(described.desc.head_dim, 16u);
  EXPECT_EQ(described.desc.ropes[kMainRope].dims, 12u);
  EXPECT_EQ(described.desc.ropes[kMainRope].theta, 500000.0);
  EXPECT_EQ(described.desc.context_train, 0u);
}

TEST(ModelDesc, without_a_count_of_kv_heads_there_are_as_many_as_heads) {
  TinyLlama shape;
  shape.n_kv_heads = shape.n_heads;
  GgufWriter writer = shape.writer();
  writer.removeKey("llama.attention.head_count_kv");
  const Described described(writer);
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  EXPECT_EQ(described.desc.n_kv_heads, 4u);
}

TEST(ModelDesc, counts_per_layer_are_read_when_all_are_equal) {
  GgufWriter writer = TinyLlama().writer();
  writer.addInt32s("llama.attention.head_count_kv", {2, 2});
  const Described described(writer);
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  EXPECT_EQ(described.desc.n_kv_heads, 2u);
}

TEST(ModelDesc, an_untied_output_is_seen) {
  TinyLlama shape;
  shape.tied_output = false;
  const Described untied(shape.writer());
  ASSERT_EQ(untied.status, ORIEL_OK) << untied.log.errors();
  EXPECT_FALSE(untied.desc.tied_output);
  EXPECT_TRUE(untied.tensors.find(TensorRole::kOutput).name.equals("output.weight"));
  const Described tied(TinyLlama().writer());
  EXPECT_TRUE(tied.tensors.find(TensorRole::kOutput).name.equals("token_embd.weight"));
}

TEST(ModelDesc, every_role_finds_its_tensor) {
  TinyLlama shape;
  shape.tied_output = false;
  shape.n_layers = 11;
  const Described described(shape.writer());
  ASSERT_EQ(described.status, ORIEL_OK) << described.log.errors();
  const std::vector<std::pair<TensorRole, std::string>> names = {
      {TensorRole::kTokenEmbedding, "token_embd.weight"},
      {TensorRole::kOutputNorm, "output_norm.weight"},
      {TensorRole::kOutput, "output.weight"},
      {TensorRole::kAttentionNorm, "blk.10.attn_norm.weight"},
      {TensorRole::kQuery, "blk.10.attn_q.weight"},
      {TensorRole::kKey, "blk.10.attn_k.weight"},
      {TensorRole::kValue, "blk.10.attn_v.weight"},
      {TensorRole::kAttentionOut, "blk.10.attn_output.weight"},
      {TensorRole::kFeedForwardNorm, "blk.10.ffn_norm.weight"},
      {TensorRole::kGate, "blk.10.ffn_gate.weight"},
      {TensorRole::kUp, "blk.10.ffn_up.weight"},
      {TensorRole::kDown, "blk.10.ffn_down.weight"},
  };
  for (const auto& [role, name] : names) {
    const uint32_t layer = name.find("blk.") == 0 ? 10 : 0;
    const GgufTensor tensor = described.tensors.find(role, layer);
    EXPECT_TRUE(tensor.name.equals(name.c_str())) << name;
    EXPECT_NE(tensor.bytes, 0u) << name;
  }
}

TEST(ModelDesc, stored_rotation_frequencies_are_ignored) {
  GgufWriter writer = TinyLlama().writer();
  writer.addTensorF32("blk.0.attn_rot_embd.weight", {4}, {1, 2, 3, 4});
  const Described described(writer);
  EXPECT_EQ(described.status, ORIEL_OK) << described.log.errors();
}

TEST(ModelDesc, runnable_types_are_accepted_where_they_run) {
  for (const uint32_t type : {1u, 2u, 8u, 30u}) {  // F16, Q4_0, Q8_0, BF16
    GgufWriter writer = TinyLlama().writer();
    writer.addTensor("blk.1.ffn_up.weight", type, {32, 64}, std::vector<uint8_t>(64 * 64));
    const Described matrix(writer);
    EXPECT_EQ(matrix.status, ORIEL_OK) << matrix.log.errors();
    const bool quantised = type == 2 || type == 8;
    writer.addTensor("blk.1.ffn_norm.weight", type, {32}, std::vector<uint8_t>(64));
    const Described vector(writer);
    EXPECT_EQ(vector.status, quantised ? ORIEL_ERROR_UNSUPPORTED : ORIEL_OK) << vector.log.errors();
  }
}

TEST(ModelDesc, types_of_few_bits_run_as_matrices) {
  TinyLlama shape;
  shape.n_ff = 256;
  for (const uint32_t type : {16u, 17u, 18u, 21u, 22u, 34u, 35u, 39u}) {
    uint32_t values = 0, bytes = 0;
    ASSERT_TRUE(tensorTypeSize(type, &values, &bytes));
    GgufWriter writer = shape.writer();
    writer.addTensor("blk.1.ffn_down.weight", type, {256, 32},
                     std::vector<uint8_t>(256 / values * bytes * 32));
    const Described matrix(writer);
    EXPECT_EQ(matrix.status, ORIEL_OK) << matrix.log.errors();
  }
}

TEST(ModelDesc, types_that_do_not_run_are_refused_by_name) {
  TinyLlama shape;
  shape.n_ff = 256;
  const std::pair<uint32_t, std::string> types[] = {{19, "IQ1_S"}, {29, "IQ1_M"}};
  for (const auto& [type, name] : types) {
    uint32_t values = 0, bytes = 0;
    ASSERT_TRUE(tensorTypeSize(type, &values, &bytes));
    GgufWriter writer = shape.writer();
    writer.addTensor("blk.1.ffn_down.weight", type, {256, 32},
                     std::vector<uint8_t>(256 / values * bytes * 32));
    const Described matrix(writer);
    EXPECT_EQ(matrix.status, ORIEL_ERROR_UNSUPPORTED);
    EXPECT_NE(matrix.log.errors().find("has type " + name + ", this build runs F32"),
              std::string::npos)
        << matrix.log.errors();
  }
}

// --- Refused files --------------------------------------------------------------------------------

TEST(ModelDesc, other_architectures_are_refused_by_name) {
  expectRefused(ORIEL_ERROR_UNSUPPORTED, {"\"nobody\" is not supported", "llama"},
                [](GgufWriter* w) { w->addString("general.architecture", "nobody"); });
  expectRefused(ORIEL_ERROR_FORMAT, {"general.architecture"},
                [](GgufWriter* w) { w->removeKey("general.architecture"); });
  expectRefused(ORIEL_ERROR_FORMAT, {"general.architecture"},
                [](GgufWriter* w) { w->addUint32("general.architecture", 1); });
}

TEST(ModelDesc, missing_numbers_are_named) {
  for (const std::string key :
       {"llama.block_count", "llama.embedding_length", "llama.feed_forward_length",
        "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon"}) {
    expectRefused(ORIEL_ERROR_FORMAT, {key, "missing"}, [&](GgufWriter* w) { w->removeKey(key); });
    expectRefused(ORIEL_ERROR_FORMAT, {key}, [&](GgufWriter* w) { w->addString(key, "many"); });
  }
}

TEST(ModelDesc, numbers_out_of_range_are_named) {
  const auto set = [](const std::string& key, uint32_t value) {
    return [=](GgufWriter* w) { w->addUint32(key, value); };
  };
  for (const std::string key :
       {"llama.block_count", "llama.embedding_length", "llama.feed_forward_length",
        "llama.attention.head_count", "llama.attention.head_count_kv"}) {
    expectRefused(ORIEL_ERROR_FORMAT, {key, " is 0"}, set(key, 0));
    expectRefused(ORIEL_ERROR_UNSUPPORTED, {key, "4294967295"}, set(key, UINT32_MAX));
    expectRefused(ORIEL_ERROR_UNSUPPORTED, {key}, [&](GgufWriter* w) {
      w->addUint64(key, (uint64_t{1} << 32) + 2);  // must not be cut to 32 bits
    });
    expectRefused(ORIEL_ERROR_FORMAT, {key}, [&](GgufWriter* w) { w->addInt32(key, -2); });
  }
  expectRefused(ORIEL_ERROR_UNSUPPORTED, {"block_count", "513"},
                set("llama.block_count", kMaxLayers + 1));
  expectRefused(ORIEL_ERROR_UNSUPPORTED, {"llama.vocab_size"},
                set("llama.vocab_size", kMaxVocabulary + 1));
  expectRefused(ORIEL_ERROR_FORMAT, {"llama.attention.head_count_kv", "3"},
                set("llama.attention.head_count_kv", 3));
  expectRefused(ORIEL_ERROR_UNSUPPORTED, {"key_length", "514"},
                set("llama.attention.key_length", 514));
  expectRefused(ORIEL_ERROR_UNSUPPORTED, {"9 values"}, set("llama.attention.key_length", 9));
  expectRefused(ORIEL_ERROR_UNSUPPORTED, {"4 values"}, set("llama.attention.head_count", 8));
  expectRefused(ORIEL_ERROR_FORMAT, {"32", "6"}, set("llama.attention.head_count", 6));
  expectRefused(ORIEL_ERROR_UNSUPPORTED, {"value_length", "16"},
                set("llama.attention.value_length", 16));
  expectRefused(ORIEL_ERROR_FORMAT, {"rope.dimension_count", "7"},
                set("llama.rope.dimension_count", 7));
  expectRefused(ORIEL_ERROR_FORMAT, {"rope.dimension_count", "10"},
                set("llama.rope.dimension_count", 10));
}

TEST(ModelDesc, real_numbers_must_be_positive_and_finite) {
  for (const std::string key : {"llama.attention.layer_norm_rms_epsilon", "llama.rope.freq_base"}) {
    for (const float value : {0.0f, -1.0f, std::nanf(""), HUGE_VALF}) {
      expectRefused(ORIEL_ERROR_FORMAT, {key}, [&](GgufWriter* w) { w->addFloat32(key, value); });
    }
  }
}

TEST(ModelDesc, counts_per_layer_are_one_for_each_layer) {
  for (const std::string key : {"llama.attention.head_count_kv", "llama.attention.head_count",
                                "llama.feed_forward_length"}) {
    for (const size_t entries : {0u, 1u, 3u, 100u}) {
      expectRefused(ORIEL_ERROR_FORMAT,
                    {key + " has " + std::to_string(entries) +
                     " entries for 2 layers: convert the model again"},
                    [&](GgufWriter* w) { w->addInt32s(key, std::vector<int32_t>(entries, 4)); });
    }
  }
  // Lists with a value for each layer must fit each layer's own tensors.
  expectRefused(ORIEL_ERROR_FORMAT, {"blk.1.attn_k.weight", "16 rows", "32 rows"},
                [](GgufWriter* w) {
                  w->addInt32s("llama.attention.head_count_kv", {2, 4});
                });
  expectRefused(ORIEL_ERROR_FORMAT, {"llama.attention.head_count_kv is 3 in layer 1", "(4)"},
                [](GgufWriter* w) {
                  w->addInt32s("llama.attention.head_count_kv", {2, 3});
                });
  expectRefused(ORIEL_ERROR_FORMAT, {"llama.attention.head_count_kv"}, [](GgufWriter* w) {
    w->addStrings("llama.attention.head_count_kv", {"2", "2"});
  });
}

TEST(ModelDesc, what_would_change_the_arithmetic_is_refused_by_key) {
  expectRefused(ORIEL_ERROR_UNSUPPORTED, {"llama.expert_count", "8"},
                [](GgufWriter* w) { w->addUint32("llama.expert_count", 8); });
}

TEST(ModelDesc, tensors_nobody_knows_are_refused_by_name) {
  for (const std::string name :
       {"blk.0.rope_freqs.weight", "blk.0.attn_q.bias", "output.bias", "blk.1.attn_q_norm.weight",
        "blk.0.ffn_gate_exps.weight", "something", "blk.", "blk.0", "blk.0.", "blk.x.attn_q.weight",
        "blk.00.attn_q.weight", "blk.0x.attn_q.weight", "blk.99999999999999999999.attn_q.weight",
        "attn_q.weight", "blk.0.token_embd.weight", "blk.-1.attn_q.weight"}) {
    expectRefused(ORIEL_ERROR_UNSUPPORTED, {"tensor " + name + " "}, [&](GgufWriter* w) {
      w->addTensorF32(name, {4}, {1, 2, 3, 4});
    });
  }
  expectRefused(ORIEL_ERROR_UNSUPPORTED, {"blk.0.attn_q.bias is a bias"}, [](GgufWriter* w) {
    w->addTensorF32("blk.0.attn_q.bias", {4}, {1, 2, 3, 4});
  });
}

TEST(ModelDesc, layers_beyond_the_count_are_refused) {
  expectRefused(ORIEL_ERROR_FORMAT, {"blk.1.", "llama.block_count is 1"},
                [](GgufWriter* w) { w->addUint32("llama.block_count", 1); });
}

TEST(ModelDesc, any_missing_tensor_is_named) {
  std::vector<std::string> names;
  {
    const Described described(TinyLlama().writer());
    GgufTensor tensor;
    uint64_t cursor = 0;
    while (described.file->nextTensor(&cursor, &tensor)) {
      names.emplace_back(tensor.name.data, tensor.name.bytes);
    }
  }
  ASSERT_EQ(names.size(), 2u + 2u * 9u);
  for (const std::string& name : names) {
    expectRefused(ORIEL_ERROR_FORMAT, {"tensor " + name + " is missing"},
                  [&](GgufWriter* w) { w->removeTensor(name); });
  }
}

TEST(ModelDesc, any_wrong_shape_is_named_with_what_was_expected) {
  for (const std::string name :
       {"token_embd.weight", "output_norm.weight", "blk.0.attn_norm.weight", "blk.1.attn_q.weight",
        "blk.1.attn_k.weight", "blk.1.attn_v.weight", "blk.1.attn_output.weight",
        "blk.1.ffn_gate.weight", "blk.1.ffn_up.weight", "blk.1.ffn_down.weight"}) {
    expectRefused(ORIEL_ERROR_FORMAT, {"tensor " + name + " ", "7 rows of 33 values"},
                  [&](GgufWriter* w) { TinyLlama::addMatrix(w, name, 7, 33); });
    expectRefused(ORIEL_ERROR_FORMAT, {"tensor " + name + " "}, [&](GgufWriter* w) {
      w->addTensor(name, 0, {32, 1, 2}, std::vector<uint8_t>(256));
    });
  }
  expectRefused(ORIEL_ERROR_FORMAT, {"blk.0.attn_k.weight", "32 rows of 32", "16 rows of 32"},
                [](GgufWriter* w) { TinyLlama::addMatrix(w, "blk.0.attn_k.weight", 32, 32); });
}

TEST(ModelDesc, types_that_do_not_run_are_refused_by_tensor_and_type) {
  // A width of 256 because that is the type's block.
  TinyLlama shape;
  shape.n_embd = 256;
  GgufWriter writer = shape.writer();
  writer.addTensor("blk.1.ffn_gate.weight", 19, {256, 64}, std::vector<uint8_t>(64 * 50));
  const Described described(writer);
  EXPECT_EQ(described.status, ORIEL_ERROR_UNSUPPORTED);
  EXPECT_TRUE(described.log.says("blk.1.ffn_gate.weight has type IQ1_S")) << described.log.errors();
  EXPECT_TRUE(described.log.says("Q8_0")) << described.log.errors();
}

TEST(ModelDesc, a_tokenizer_of_another_size_is_refused) {
  expectRefused(ORIEL_ERROR_FORMAT, {"tokenizer.ggml.tokens", "15", "16"}, [](GgufWriter* w) {
    w->addStrings("tokenizer.ggml.tokens", std::vector<std::string>(15, "t"));
  });
}

TEST(ModelDesc, a_refusal_leaves_the_description_alone) {
  GgufWriter writer = TinyLlama().writer();
  writer.removeTensor("blk.1.ffn_up.weight");
  const Described described(writer);
  EXPECT_NE(described.status, ORIEL_OK);
  EXPECT_EQ(described.desc.n_layers, 0u);
}

// --- Real files ----------------------------------------------------------------------------------

struct RealFile {
  std::string name;
  uint32_t n_layers, n_embd, n_heads, n_kv_heads, head_dim, n_ff, n_vocab;
  bool tied;
};

void expectDescribed(const std::string& folder, const RealFile& expected) {
  const std::string path = folder + "/" + expected.name;
  SCOPED_TRACE(path);
  CapturedLog log;
  ModelFile file;
  ASSERT_TRUE(file.open(path.c_str(), defaultAllocator(), log.log()).ok()) << log.errors();
  ModelDesc desc;
  TensorIndex tensors;
  ASSERT_TRUE(readModelDesc(file.gguf(), defaultAllocator(), log.log(), &desc, &tensors).ok())
      << log.errors();
  EXPECT_EQ(desc.n_layers, expected.n_layers);
  EXPECT_EQ(desc.n_embd, expected.n_embd);
  EXPECT_EQ(desc.n_heads, expected.n_heads);
  EXPECT_EQ(desc.n_kv_heads, expected.n_kv_heads);
  EXPECT_EQ(desc.head_dim, expected.head_dim);
  EXPECT_EQ(desc.ropes[kMainRope].dims, expected.head_dim);
  EXPECT_EQ(desc.n_ff, expected.n_ff);
  EXPECT_EQ(desc.n_vocab, expected.n_vocab);
  EXPECT_EQ(desc.ropes[kMainRope].theta, 10000.0);
  EXPECT_EQ(desc.tied_output, expected.tied);
}

TEST(ModelDesc, every_test_model_is_described) {
  std::vector<RealFile> files;
  for (const std::string type : {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1",
                                 "iq4_nl", "q2_k", "q3_k", "q4_k", "q4_k_m", "q5_k", "q6_k"}) {
    files.push_back({"llama-" + type + ".gguf", 2, 256, 4, 2, 64, 256, 384, true});
  }
  files.push_back({"llama-mqa.gguf", 2, 128, 4, 1, 32, 192, 512, true});
  uint32_t described = 0;
  for (const RealFile& file : files) {
    if (const std::string path = test::dataFile("models/" + std::string(file.name));
        !path.empty()) {
      expectDescribed(path.substr(0, path.rfind('/')), file);
      ++described;
    }
  }
  EXPECT_GE(described, 9u) << "the types that are in the repository";
}

TEST(ModelDesc, the_bundled_model_is_described) {
  expectDescribed(ORIEL_SOURCE_DIR "/models/oriel-tiny",
                  {"oriel-tiny-q8_0.gguf", 6, 384, 6, 2, 64, 768, 2048, true});
}

TEST(ModelDesc, published_models_are_described) {
  const std::string folder = ORIEL_REFERENCE_DATA "/models";
  ORIEL_SKIP_WITHOUT(std::filesystem::is_directory(folder), "published models");
  expectDescribed(folder, {"stories260K.gguf", 5, 64, 8, 4, 8, 172, 512, true});
  expectDescribed(folder, {"TinyStories-656K-Q2_K.gguf", 2, 128, 8, 4, 16, 384, 2048, true});
}

}  // namespace
}  // namespace oriel_internal::test_model_desc

namespace oriel_internal::test::test_float64_model {

// Validates the float64 pass that tests compare with: against logits of another float64 implementation
// (tests/data/README.md).

namespace {

constexpr size_t kEverything = 1u << 30;

int32_t best(const std::vector<double>& logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

class Float64 : public testing::TestWithParam<const char*> {};

TEST_P(Float64, logits_and_greedy_tokens_equal_the_other_implementation) {
  const std::string name = GetParam();
  ORIEL_NEED_DATA(model, "models/" + name + ".gguf");
  ORIEL_NEED_LOGITS(prompts, name);
  for (const nlohmann::json& prompt : prompts) {
    const std::vector<int32_t> ids = prompt["ids"];
    const nlohmann::json& exact = prompt["exact"];
    Float64Model reference(model);
    std::vector<double> logits;
    for (const int32_t id : ids) {
      logits = reference.step(id, 0, kEverything);
    }
    // Stored as float32: 6e-8 of each value.
    EXPECT_LT(relativeL2(logits, base64As<float>(exact["logits_f32_b64"])), 1e-6)
        << name << ", prompt of " << ids.size();
    std::vector<int32_t> want = exact["greedy"];
    want.resize(std::min<size_t>(want.size(), allCases() ? want.size() : 10));
    std::vector<int32_t> got;
    while (got.size() < want.size()) {
      got.push_back(best(logits));
      logits = reference.step(got.back(), 0, kEverything);
    }
    EXPECT_EQ(want, got) << name;
  }
}

std::string caseName(const testing::TestParamInfo<const char*>& tested) {
  std::string name = tested.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, Float64,
                         testing::Values("llama-mqa", "llama3-rope", "qwen3", "gemma3", "smollm3",
                                         "phi3", "granite", "granite-nope", "minicpm",
                                         "minicpm-nokeys", "ernie4_5", "hunyuan-dense", "mistral3",
                                         "exaone4", "exaone4-swa", "olmo2", "olmo3", "gemma2",
                                         "lfm2", "lfm2-q8_0", "lfm2-q4_0", "lfm2-b", "qwen35",
                                         "qwen35-q8_0", "qwen35-128", "qwen35-nextn",
                                         "granitehybrid", "granitehybrid-moe", "falcon-h1"),
                         caseName);

TEST(Float64States, equal_the_other_implementation) {
  for (const std::string name : {"qwen35", "qwen35-128", "qwen35-nextn", "granitehybrid",
                                 "granitehybrid-moe", "falcon-h1"}) {
    ORIEL_NEED_DATA(model, "models/" + name + ".gguf");
    ORIEL_NEED_LOGITS(prompts, name);
    for (const nlohmann::json& prompt : prompts) {
      const nlohmann::json& state = prompt["exact"]["recurrent_state"];
      Float64Model reference(model);
      for (const int32_t id : prompt["ids"]) {
        (void)reference.step(id, 0, kEverything);
      }
      const size_t layer = state["layer"];
      std::vector<double> got, columns;
      for (const std::vector<double>& row : reference.states().matrix(layer, state["head"])) {
        got.insert(got.end(), row.begin(), row.end());
      }
      for (const std::vector<double>& column : reference.states().columns(layer)) {
        columns.insert(columns.end(), column.begin(), column.end());
      }
      EXPECT_LT(relativeL2(got, base64As<float>(state["state_f32_b64"])), 1e-6) << name;
      EXPECT_LT(relativeL2(columns, base64As<float>(state["conv_f32_b64"])), 1e-6) << name;
    }
  }
}

void expectLosses(const std::string& model, const std::string& golden) {
  const nlohmann::json file = readJson(golden);
  const std::vector<int32_t> ids = file["ids"];
  size_t compared = 0;
  for (const nlohmann::json& run : file["runs"]) {
    const std::string kind = run["kind"];
    if (kind == "sinks-absolute-positions") {  // a deliberately wrong method
      continue;
    }
    const bool all = kind == "full-absolute";
    const size_t sinks = all ? 0 : run["sinks"].get<size_t>();
    const size_t window = all ? kEverything : run["window"].get<size_t>();
    const std::vector<double> want = base64As<double>(run["nll_f64_b64"]);
    ASSERT_EQ(ids.size() - 1, want.size());
    Float64Model reference(model);
    double worst = 0;
    const size_t tokens = std::min<size_t>(want.size(), allCases() ? want.size() : 200);
    for (size_t t = 0; t < tokens; ++t) {
      const std::vector<double> logits = reference.step(ids[t], sinks, window);
      const double nll = logSumExp(logits) - logits[static_cast<size_t>(ids[t + 1])];
      worst = worse(worst, std::abs(nll - want[t]));
    }
    EXPECT_LT(worst, 1e-9) << kind << " sinks " << sinks << " window " << window;
    ++compared;
  }
  EXPECT_EQ(3u, compared);
}

TEST(Float64Streaming, losses_of_short_convolutions_equal_the_other_implementation) {
  ORIEL_NEED_DATA(model, "models/lfm2.gguf");
  ORIEL_NEED_DATA(golden, "streaming/lfm2-sampled.json");
  expectLosses(model, golden);
}

TEST(Float64Streaming, losses_of_states_equal_the_other_implementation) {
  ORIEL_NEED_DATA(model, "models/qwen35.gguf");
  ORIEL_NEED_DATA(golden, "streaming/qwen35-random-ids.json");
  expectLosses(model, golden);
}

void expectGreedy(const std::string& model, const std::string& golden) {
  const nlohmann::json file = readJson(golden);
  for (const nlohmann::json& run : file["runs"]) {
    const size_t sinks = run["sinks"];
    const size_t window = run["window"];
    Float64Model reference(model);
    std::vector<double> logits;
    for (const int32_t id : file["prompt_ids"].get<std::vector<int32_t>>()) {
      logits = reference.step(id, sinks, window);
    }
    std::vector<int32_t> want = run["greedy"];
    ASSERT_EQ(600u, want.size());
    want.resize(allCases() ? 600 : 200);
    std::vector<int32_t> got;
    while (got.size() < want.size()) {
      got.push_back(best(logits));
      logits = reference.step(got.back(), sinks, window);
    }
    EXPECT_EQ(want, got) << "sinks " << sinks << " window " << window;
  }
}

TEST(Float64Streaming, greedy_tokens_of_short_convolutions_equal_the_other_implementation) {
  ORIEL_NEED_DATA(model, "models/lfm2.gguf");
  ORIEL_NEED_DATA(golden, "streaming/generate-lfm2.json");
  expectGreedy(model, golden);
}

TEST(Float64Streaming, greedy_tokens_of_states_equal_the_other_implementation) {
  ORIEL_NEED_DATA(model, "models/qwen35.gguf");
  ORIEL_NEED_DATA(golden, "streaming/generate-qwen35.json");
  expectGreedy(model, golden);
}

}  // namespace
}  // namespace oriel_internal::test::test_float64_model

namespace oriel_internal::test::test_latent {

// Latent attention in files.

namespace {

TEST(Latent, widths_of_heads_have_names_of_their_own_where_matrices_do) {
  const Described split(randomFamily("deepseek2").writer());
  ASSERT_EQ(ORIEL_OK, split.status) << split.log.errors();
  const LayerKind& kind = split.desc.kind(0);
  EXPECT_EQ(32u, kind.latent_dim);
  EXPECT_EQ(16u, kind.rope_dim);
  EXPECT_EQ(40u, kind.head_dim);
  EXPECT_EQ(20u, kind.value_dim);
  EXPECT_EQ(48u, kind.query_latent_dim);
  EXPECT_FALSE(kind.joined_latent);
  EXPECT_EQ(1u, kind.n_kv_heads);
  EXPECT_EQ(16u, split.desc.ropes[kMainRope].dims);
  EXPECT_FLOAT_EQ(1 / std::sqrt(40.0f), kind.attention_scale);

  const Described joined(randomFamily("minicpm3").writer());
  ASSERT_EQ(ORIEL_OK, joined.status) << joined.log.errors();
  EXPECT_TRUE(joined.desc.kind(0).joined_latent);
  EXPECT_EQ(24u, joined.desc.kind(0).head_dim);
  EXPECT_EQ(16u, joined.desc.kind(0).value_dim) << "the width divided by the heads";
}

TEST(Latent, experts_are_weighed_as_the_file_says) {
  const Described says(randomFamily("deepseek2").writer());
  const Experts& experts = says.desc.kind(1).experts;
  EXPECT_TRUE(experts.sigmoid && experts.normalised);
  EXPECT_EQ(2.5f, experts.scale);
  EXPECT_EQ(40u, says.desc.kind(1).n_ff) << "a shared expert";
  EXPECT_EQ(0u, says.desc.kind(0).experts.count);
  const Described silent(randomFamily("deepseek2 of queries from inputs").writer());
  EXPECT_FALSE(silent.desc.kind(1).experts.sigmoid || silent.desc.kind(1).experts.normalised);
  EXPECT_EQ(1.0f, silent.desc.kind(1).experts.scale) << "0 says nothing";
  EXPECT_EQ(80u, silent.desc.kind(1).n_ff) << "as wide as two";
}

TEST(Latent, yarn_scales_scores_not_what_is_rotated) {
  const Described scaled(randomFamily("deepseek2 of queries from inputs").writer());
  const double root = 1 + 0.0707 * std::log(16.0);
  EXPECT_NEAR(root * root / std::sqrt(40.0),
              static_cast<double>(scaled.desc.kind(0).attention_scale), 1e-6);
  EXPECT_EQ(1.0, scaled.desc.ropes[kMainRope].magnitude);
}

// Files of DeepSeek-V2-Lite state a query latent width although the model has none.
TEST(Latent, tensors_say_whether_queries_have_latents) {
  GgufWriter writer = randomFamily("deepseek2 of queries from inputs").writer();
  writer.addUint32("deepseek2.attention.q_lora_rank", 1536);
  const Described described(writer);
  ASSERT_EQ(ORIEL_OK, described.status) << described.log.errors();
  EXPECT_EQ(0u, described.desc.kind(0).query_latent_dim);
}

TEST(Latent, what_does_not_run_is_named) {
  struct Refusal {
    oriel_status status;
    const char* words;
    std::function<void(GgufWriter*)> bend;
  };
  const std::string of = "deepseek2.";
  for (
      const Refusal& r :
      {Refusal{ORIEL_ERROR_FORMAT, "expert_group_used_count is missing",
               [&](GgufWriter* w) { w->addUint32(of + "expert_group_count", 8); }},
       Refusal{ORIEL_ERROR_UNSUPPORTED, "kv_lora_rank is 1024",
               [&](GgufWriter* w) { w->addUint32(of + "attention.kv_lora_rank", 1024); }},
       Refusal{ORIEL_ERROR_UNSUPPORTED, "of which 40 are rotated",
               [&](GgufWriter* w) { w->addUint32(of + "rope.dimension_count", 40); }},
       Refusal{ORIEL_ERROR_UNSUPPORTED, "of which 7 are rotated",
               [&](GgufWriter* w) { w->addUint32(of + "rope.dimension_count", 7); }},
       Refusal{ORIEL_ERROR_FORMAT, "value_length_mla is 0",
               [&](GgufWriter* w) { w->addUint32(of + "attention.value_length_mla", 0); }},
       Refusal{ORIEL_ERROR_FORMAT, "blk.1.attn_v_b.weight is missing",
               [](GgufWriter* w) { w->removeTensor("blk.1.attn_v_b.weight"); }},
       Refusal{
           ORIEL_ERROR_FORMAT, "tensor blk.0.attn_k_b.weight has 31 rows of 24", [](GgufWriter* w) {
             w->addTensorF32("blk.0.attn_k_b.weight", {24, 31, 4}, std::vector<float>(24 * 31 * 4));
           }}}) {
    GgufWriter writer = randomFamily("deepseek2").writer();
    r.bend(&writer);
    CapturedLog log;
    const std::vector<uint8_t> image = writer.build();
    GgufFile file;
    ASSERT_TRUE(file.open(image.data(), image.size(), log.log()).ok());
    ModelDesc desc;
    TensorIndex tensors;
    EXPECT_EQ(r.status, readModelDesc(file, defaultAllocator(), log.log(), &desc, &tensors).code())
        << r.words;
    EXPECT_NE(std::string::npos, log.errors().find(r.words)) << log.errors();
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_latent
