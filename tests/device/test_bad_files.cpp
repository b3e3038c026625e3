// Files that must be refused through the public API: with the right status, one line that names the fault and the
// remedy, and no leaks.
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "support/model_mutants.h"
#include "support/random_families.h"
#include "support/random_llama.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_bad_files {
namespace {

FILE_RUNS_ON(kCpu);

/// A complete, loadable model for tests to damage.
GgufWriter goodFile(const TinyLlama& shape = TinyLlama()) {
  GgufWriter out = shape.writer();
  std::vector<std::string> tokens = {"<|endoftext|>"};
  std::vector<int32_t> types = {3};
  for (char c = 'a'; tokens.size() < shape.n_vocab; ++c) {
    tokens.push_back(std::string(1, c));
    types.push_back(1);
  }
  out.addString("tokenizer.ggml.model", "gpt2");
  out.addString("tokenizer.ggml.pre", "gpt-2");
  out.addStrings("tokenizer.ggml.tokens", tokens);
  out.addInt32s("tokenizer.ggml.token_type", types);
  out.addStrings("tokenizer.ggml.merges", {});
  return out;
}

TEST_F(BadFiles, the_good_one_loads) {
  write(goodFile().build());
  Options options = makeOptions();
  options.device = "cpu";
  options.memory_bytes = 64u << 20;
  const Loaded loaded = load(path_, options);
  ASSERT_TRUE(loaded.session);
  const int32_t id = 1;
  EXPECT_EQ(ORIEL_OK, oriel_session_append(loaded.session.get(), &id, 1, nullptr, nullptr));
}

TEST_F(BadFiles, no_file_a_folder_and_nothing_in_it) {
  expectRefused("/no/such/model.gguf", ORIEL_ERROR_IO, "/no/such/model.gguf");
  expectRefused(testing::TempDir(), ORIEL_ERROR_IO, testing::TempDir());
  write({});
  expectRefused(path_, ORIEL_ERROR_IO, path_);  // nothing to map
}

TEST_F(BadFiles, something_else) {
  const std::string text = "PK\x03\x04 this is an archive and by no means a model";
  write({text.begin(), text.end()});
  expectRefused(path_, ORIEL_ERROR_FORMAT, "GGUF");
  GgufWriter newer = goodFile();
  newer.version = 99;
  expectRefused(newer, ORIEL_ERROR_UNSUPPORTED, "99");
}

TEST_F(BadFiles, truncated_anywhere) {
  GgufWriter writer = goodFile();
  writer.pad_last = false;
  const std::vector<uint8_t> whole = writer.build();
  // Truncates in the header in small steps, then in the tensors' data.
  for (size_t keep = 1; keep < whole.size(); keep += keep < 3000 ? 97 : 4999) {
    SCOPED_TRACE(std::to_string(keep) + " bytes kept");
    write({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(keep)});
    expectRefused(path_, ORIEL_ERROR_FORMAT, "GGUF");
  }
  write({whole.begin(), whole.end() - 1});
  expectRefused(path_, ORIEL_ERROR_FORMAT, "GGUF");
}

TEST_F(BadFiles, counts_beyond_all_reason) {
  for (const uint64_t huge : {UINT64_MAX, uint64_t{1} << 62, uint64_t{1} << 32}) {
    GgufWriter tensors = goodFile();
    tensors.setCounts(huge, 3);
    expectRefused(tensors, ORIEL_ERROR_FORMAT, std::to_string(huge));
    GgufWriter keys = goodFile();
    keys.setCounts(1, huge);
    expectRefused(keys, ORIEL_ERROR_FORMAT, std::to_string(huge));
  }
}

TEST_F(BadFiles, an_architecture_this_build_does_not_run) {
  GgufWriter file = goodFile();
  file.addString("general.architecture", "mamba9");
  expectRefused(file, ORIEL_ERROR_UNSUPPORTED, "mamba9");
  file.removeKey("general.architecture");
  expectRefused(file, ORIEL_ERROR_FORMAT, "general.architecture");
}

TEST_F(BadFiles, a_tensor_type_this_build_cannot_read) {
  TinyLlama wide;
  wide.n_embd = 256;
  GgufWriter known = goodFile(wide);
  known.addTensor("blk.1.ffn_up.weight", 19, {256, 64}, std::vector<uint8_t>(64 * 50));  // IQ1_S
  expectRefused(known, ORIEL_ERROR_UNSUPPORTED, "blk.1.ffn_up.weight");
  GgufWriter unknown = goodFile();
  unknown.addTensor("blk.1.ffn_up.weight", 4711, {32, 64}, std::vector<uint8_t>(8192));
  expectRefused(unknown, ORIEL_ERROR_UNSUPPORTED, "4711");
}

TEST_F(BadFiles, a_tensor_of_another_shape) {
  GgufWriter file = goodFile();
  TinyLlama::addMatrix(&file, "blk.0.attn_k.weight", 24, 32);
  expectRefused(file, ORIEL_ERROR_FORMAT, "blk.0.attn_k.weight");
}

TEST_F(BadFiles, a_missing_tensor) {
  for (const std::string name :
       {"token_embd.weight", "blk.1.ffn_down.weight", "output_norm.weight"}) {
    GgufWriter file = goodFile();
    file.removeTensor(name);
    expectRefused(file, ORIEL_ERROR_FORMAT, name);
  }
}

TEST_F(BadFiles, a_missing_or_absurd_number) {
  for (const std::string key :
       {"llama.block_count", "llama.embedding_length", "llama.attention.head_count"}) {
    GgufWriter file = goodFile();
    file.removeKey(key);
    expectRefused(file, ORIEL_ERROR_FORMAT, key);
  }
  GgufWriter layers = goodFile();
  layers.addUint32("llama.block_count", 0xffffffffu);
  expectRefused(layers, ORIEL_ERROR_UNSUPPORTED, "llama.block_count");
  GgufWriter heads = goodFile();
  heads.addUint32("llama.attention.head_count_kv", 3);
  expectRefused(heads, ORIEL_ERROR_FORMAT, "head_count_kv");
}

TEST_F(BadFiles, no_tokenizer_or_one_that_does_not_belong) {
  GgufWriter none = goodFile();
  for (const char* key : {"model", "pre", "tokens", "token_type", "merges"}) {
    none.removeKey(std::string("tokenizer.ggml.") + key);
  }
  expectRefused(none, ORIEL_ERROR_FORMAT, "tokenizer.ggml.model");
  GgufWriter unknown = goodFile();
  unknown.addString("tokenizer.ggml.pre", "klingon");
  expectRefused(unknown, ORIEL_ERROR_UNSUPPORTED, "klingon");
  GgufWriter few = goodFile();
  few.addStrings("tokenizer.ggml.tokens", {"<|endoftext|>", "a", "b"});
  few.addInt32s("tokenizer.ggml.token_type", {3, 1, 1});
  expectRefused(few, ORIEL_ERROR_FORMAT, "tokenizer.ggml.tokens");
}

TEST_F(BadFiles, a_budget_that_is_too_small) {
  write(goodFile().build());
  expectRefused(path_, ORIEL_ERROR_MEMORY_BUDGET, "1000", 1000);
}

}  // namespace
}  // namespace oriel_internal::test::test_bad_files

namespace oriel_internal::test::test_bad_families {

// Files of Granite to LFM2 with one fault: refused through the public API with one line that names it.

namespace {

using Change = std::function<void(GgufWriter*)>;

class BadFamilies : public BadFiles {
 protected:
  void expectNamed(const RandomLlama& sound, const std::string& culprit, const Change& change) {
    GgufWriter file = sound.writer();
    change(&file);
    SCOPED_TRACE(culprit);
    expectRefused(file, culprit);
  }
};

/// Optional tensors: without these a layer is valid, but different.
bool isOptional(const RandomFamily& family, const std::string& tensor) {
  const bool gemma4 = family.model.architecture == "gemma4";
  return tensor.find("exp_probs_b.bias") != std::string::npos ||
         tensor.find("ssm_conv1d.bias") != std::string::npos ||
         tensor.find("nextn.") != std::string::npos ||
         (gemma4 && (tensor.find("attn_v.weight") != std::string::npos ||
                     tensor.find("layer_output_scale") != std::string::npos));
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

void addBools(GgufWriter* file, const std::string& key, size_t count) {
  file->addArray<uint8_t>(key, ValueType::kBool, std::vector<uint8_t>(count, 1));
}

// ---- Tensors -------------------------------------------------------------------------------------

TEST_F(BadFamilies, a_missing_tensor_and_one_of_another_shape) {
  for (const RandomFamily& family : randomFamilies()) {
    SCOPED_TRACE(family.name);
    GgufWriter sound = family.model.writer();
    // An ordinary run tries every second tensor of a family, the others with the next one.
    size_t number = static_cast<size_t>(&family - randomFamilies().data());
    for (const GgufWriter::Tensor& tensor : sound.tensors()) {
      const std::string& name = tensor.name;
      // One convolution or state and one attention layer are enough; all layers of other families are alike.
      if (name.find("blk.") == 0 && name.find("blk.1.") != 0 && name.find("blk.2.") != 0) {
        continue;
      }
      if (!allCases() && ++number % 2 == 0) {
        continue;
      }
      SCOPED_TRACE(name);
      if (name != "rope_freqs.weight" && name != "output.weight" && !isOptional(family, name)) {
        GgufWriter without = sound;
        without.removeTensor(name);
        expectRefused(without, ORIEL_ERROR_FORMAT, name);
      }
      GgufWriter other = sound;
      // The number of rows must equal the number of tokens; otherwise the error names the vocabulary.
      const uint64_t rows = name == "token_embd.weight" ? family.model.n_vocab : 7;
      other.addTensorF32(name, {33, rows}, std::vector<float>(33 * rows));
      expectRefused(other, ORIEL_ERROR_FORMAT, name);
    }
  }
}

TEST_F(BadFamilies, an_output_matrix_where_the_embedding_cannot_be_it) {
  for (const char* name : {"olmo2", "olmo3"}) {
    expectNamed(randomFamily(name), "output.weight",
                [](GgufWriter* file) { file->removeTensor("output.weight"); });
  }
}

TEST_F(BadFamilies, norms_over_heads_where_they_are_over_rows) {
  const RandomLlama olmo2 = randomFamily("olmo2");
  for (const std::string name : {"blk.1.attn_q_norm.weight", "blk.1.attn_k_norm.weight"}) {
    expectNamed(olmo2, name, [&](GgufWriter* file) {
      file->addTensorF32(name, {olmo2.head_dim}, std::vector<float>(olmo2.head_dim, 1.0f));
    });
  }
}

// ---- Multipliers ---------------------------------------------------------------------------------

TEST_F(BadFamilies, multipliers_that_are_negative_or_no_numbers) {
  const struct {
    const char* family;
    const char* architecture;
    std::vector<std::string> keys;
  } cases[] = {
      {"granite",
       "granite",
       {"embedding_scale", "residual_scale", "attention.scale", "logit_scale"}},
      {"minicpm", "minicpm", {"embedding_scale", "residual_scale", "logit_scale"}},
      {"mistral3",
       "mistral3",
       {"attention.temperature_scale", "rope.scaling.yarn_log_multiplier", "rope.scaling.factor"}},
      {"gemma2", "gemma2", {"attn_logit_softcapping", "final_logit_softcapping"}},
      {"hunyuan-dense of a longer context", "hunyuan-dense", {"rope.scaling.alpha"}},
  };
  for (const auto& c : cases) {
    for (const std::string& suffix : c.keys) {
      const std::string key = std::string(c.architecture) + "." + suffix;
      for (const float value : {kNan, kInfinite, -kInfinite, -1.0f}) {
        SCOPED_TRACE(value);
        expectNamed(randomFamily(c.family), key,
                    [&](GgufWriter* file) { file->addFloat32(key, value); });
      }
    }
  }
}

TEST_F(BadFamilies, a_granite_that_does_not_say_how_its_logits_are_scaled) {
  expectNamed(randomFamily("granite"), "granite.logit_scale",
              [](GgufWriter* file) { file->removeKey("granite.logit_scale"); });
}

TEST_F(BadFamilies, a_trained_context_of_nothing) {
  const std::string key = "mistral3.rope.scaling.original_context_length";
  expectNamed(randomFamily("mistral3"), key, [&](GgufWriter* file) { file->addUint32(key, 0); });
}

// ---- Windows -------------------------------------------------------------------------------------

TEST_F(BadFamilies, patterns_of_windows_that_are_too_short_or_too_long) {
  const RandomLlama exaone4 = smallExaone4OfWindows();
  const RandomLlama olmo3 = randomFamily("olmo3");
  for (const RandomLlama* sound : {&exaone4, &olmo3}) {
    const std::string key = sound->architecture + ".attention.sliding_window_pattern";
    for (const size_t count :
         {size_t{0}, size_t{1}, size_t{sound->n_layers} - 1, size_t{sound->n_layers} + 1}) {
      expectNamed(*sound, key, [&](GgufWriter* file) { addBools(file, key, count); });
    }
  }
}

TEST_F(BadFamilies, windows_beyond_all_reason) {
  for (const RandomLlama& sound :
       {randomFamily("gemma2"), randomFamily("olmo3"), smallExaone4OfWindows()}) {
    const std::string key = sound.architecture + ".attention.sliding_window";
    for (const uint64_t window : {uint64_t{1} << 23, uint64_t{1} << 40, UINT64_MAX}) {
      expectNamed(sound, key, [&](GgufWriter* file) { file->addUint64(key, window); });
    }
  }
}

// ---- Short convolutions --------------------------------------------------------------------------

constexpr const char* kKvHeads = "lfm2.attention.head_count_kv";

TEST_F(BadFamilies, counts_of_heads_for_more_or_fewer_layers_than_there_are) {
  for (const std::vector<int32_t>& counts : std::vector<std::vector<int32_t>>{
           {}, {2}, {0, 0, 2, 0, 2}, {0, 0, 2, 0, 2, 0, 0}, std::vector<int32_t>(600, 0)}) {
    expectNamed(smallLfm2(), kKvHeads,
                [&](GgufWriter* file) { file->addInt32s(kKvHeads, counts); });
  }
}

TEST_F(BadFamilies, counts_of_heads_that_are_none) {
  for (const std::vector<int32_t>& counts : std::vector<std::vector<int32_t>>{
           {0, 0, -2, 0, 2, 0}, {0, 0, 3, 0, 3, 0}, {0, 0, 1 << 30, 0, 2, 0}, {0, 0, 8, 0, 8, 0}}) {
    expectNamed(smallLfm2(), kKvHeads,
                [&](GgufWriter* file) { file->addInt32s(kKvHeads, counts); });
  }
  expectNamed(smallLfm2(), kKvHeads, [](GgufWriter* file) {
    file->addFloat32s(kKvHeads, {0, 0, 2, 0, 2, 0});
  });
  expectNamed(smallLfm2(), kKvHeads, [](GgufWriter* file) {
    file->addStrings(kKvHeads, {"0", "0", "2", "0", "2", "0"});
  });
  expectNamed(smallLfm2(), kKvHeads, [](GgufWriter* file) { file->addString(kKvHeads, "2"); });
}

TEST_F(BadFamilies, no_layer_that_attends) {
  expectNamed(smallLfm2(), kKvHeads,
              [](GgufWriter* file) { file->addInt32s(kKvHeads, std::vector<int32_t>(6, 0)); });
  expectNamed(smallLfm2(), kKvHeads, [](GgufWriter* file) { file->addUint32(kKvHeads, 0); });
  const std::string heads = "lfm2.attention.head_count";
  expectNamed(smallLfm2(), heads, [&](GgufWriter* file) { file->addUint32(heads, 0); });
}

TEST_F(BadFamilies, layers_of_the_other_kind) {
  expectNamed(smallLfm2(), "blk.0.shortconv.", [](GgufWriter* file) {
    file->addInt32s(kKvHeads, {2, 0, 2, 0, 2, 0});
  });
  expectNamed(smallLfm2(), "blk.4.attn_", [](GgufWriter* file) {
    file->addInt32s(kKvHeads, {0, 0, 2, 0, 0, 0});
  });
  // A single number means that every layer attends.
  expectNamed(smallLfm2(), "blk.0.shortconv.",
              [](GgufWriter* file) { file->addUint32(kKvHeads, 2); });
}

TEST_F(BadFamilies, convolutions_of_no_or_too_many_taps) {
  const std::string key = "lfm2.shortconv.l_cache";
  expectNamed(smallLfm2(), key, [&](GgufWriter* file) { file->removeKey(key); });
  for (const uint32_t taps : {0u, 4000000000u}) {
    expectNamed(smallLfm2(), key, [&](GgufWriter* file) { file->addUint32(key, taps); });
  }
  expectNamed(smallLfm2(), key, [&](GgufWriter* file) { file->addInt32(key, -3); });
  expectNamed(smallLfm2(), key,
              [&](GgufWriter* file) { file->addUint64(key, (uint64_t{1} << 32) + 3); });
  expectNamed(smallLfm2(), key, [&](GgufWriter* file) { file->addFloat32(key, kNan); });
  // Taps that the tensor lacks.
  for (const uint32_t taps : {1u, 4u}) {
    expectNamed(smallLfm2(), "shortconv.", [&](GgufWriter* file) { file->addUint32(key, taps); });
  }
}

TEST_F(BadFamilies, taps_and_thirds_of_another_width) {
  const uint64_t n = smallLfm2().n_embd;
  const auto shaped = [&](const std::string& name, uint64_t cols, uint64_t rows) {
    expectNamed(smallLfm2(), name, [&](GgufWriter* file) {
      file->addTensorF32(name, {cols, rows}, std::vector<float>(cols * rows));
    });
  };
  shaped("blk.3.shortconv.conv.weight", n, 3);
  shaped("blk.3.shortconv.conv.weight", 3, n - 1);
  shaped("blk.3.shortconv.conv.weight", 4, n);
  shaped("blk.3.shortconv.in_proj.weight", n, 2 * n);
  shaped("blk.3.shortconv.in_proj.weight", n, 4 * n);
  shaped("blk.3.shortconv.out_proj.weight", n, 3 * n);
}

}  // namespace
}  // namespace oriel_internal::test::test_bad_families
