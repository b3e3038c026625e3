// Files that must be refused through the public API: with the right status, one line that names the fault and the
// remedy, and no leaks.
#include <gtest/gtest.h>
#include "support/bad_files.h"
#include "support/tiny_llama.h"

namespace oriel_internal::test::test_bad_files {
namespace {

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
