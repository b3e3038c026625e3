// A llama of any shape, or one of its relatives, with random weights, as a file. Tests only.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/gguf_writer.h"

namespace oriel::test {

struct RandomLlama {
  std::string architecture = "llama";
  uint32_t n_layers = 2;
  uint32_t n_embd = 64;
  uint32_t n_heads = 4;
  uint32_t n_kv_heads = 2;
  uint32_t head_dim = 16;
  uint32_t n_ff = 96;
  uint32_t n_vocab = 320;
  uint32_t context = 512;
  bool tied_output = true;
  uint32_t local_window = 0;  ///< gemma3 has one
  uint32_t local_period = 0;  ///< 0: the file does not say
  float rope_base = 0;        ///< 0: the file does not say
  float rope_factor = 0;      ///< linear scaling; 0: none
  std::vector<float> rope_freqs;
  float key_norm_gain = 1;  ///< of architectures with norms over heads
  uint32_t seed = 1;
  uint32_t eos = 2;
  std::string chat_template;
  std::vector<std::string> control_tokens = {};  ///< behind the byte tokens
  /// Ids that get another text, as ordinary tokens.
  std::vector<std::pair<uint32_t, std::string>> renamed = {};

  std::vector<uint8_t> bytes() const {
    std::mt19937 random(seed);
    GgufWriter out;
    out.addString("general.architecture", architecture);
    out.addUint32(architecture + ".block_count", n_layers);
    out.addUint32(architecture + ".embedding_length", n_embd);
    out.addUint32(architecture + ".feed_forward_length", n_ff);
    out.addUint32(architecture + ".attention.head_count", n_heads);
    out.addUint32(architecture + ".attention.head_count_kv", n_kv_heads);
    out.addUint32(architecture + ".attention.key_length", head_dim);
    out.addUint32(architecture + ".attention.value_length", head_dim);
    out.addUint32(architecture + ".context_length", context);
    out.addFloat32(architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
    if (local_window != 0) {
      out.addUint32(architecture + ".attention.sliding_window", local_window);
    }
    if (local_period != 0) {
      out.addUint32(architecture + ".attention.sliding_window_pattern", local_period);
    }
    if (rope_base != 0) {
      out.addFloat32(architecture + ".rope.freq_base", rope_base);
    }
    if (rope_factor != 0) {
      out.addString(architecture + ".rope.scaling.type", "linear");
      out.addFloat32(architecture + ".rope.scaling.factor", rope_factor);
    }
    addVocabulary(&out);
    const auto matrix = [&](const std::string& name, uint32_t rows, uint32_t cols, float gain) {
      std::normal_distribution<float> normal(0.0f, gain / std::sqrt(static_cast<float>(cols)));
      std::vector<float> values(static_cast<size_t>(rows) * cols);
      for (float& value : values) {
        value = normal(random);
      }
      add(&out, name, {cols, rows}, values);
    };
    const auto vector = [&](const std::string& name, uint32_t size, float gain) {
      std::uniform_real_distribution<float> around_one(0.7f, 1.3f);
      std::vector<float> values(size);
      for (float& value : values) {
        value = gain * around_one(random);
      }
      add(&out, name, {size}, values);
    };
    const auto norm = [&](const std::string& name) { vector(name, n_embd, 1.0f); };
    matrix("token_embd.weight", n_vocab, n_embd, std::sqrt(static_cast<float>(n_embd)));
    norm("output_norm.weight");
    if (!tied_output) {
      matrix("output.weight", n_vocab, n_embd, 2.0f);
    }
    if (!rope_freqs.empty()) {
      add(&out, "rope_freqs.weight", {rope_freqs.size()}, rope_freqs);
    }
    const bool fused = architecture == "phi3";
    for (uint32_t layer = 0; layer < n_layers; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      if (architecture == "qwen3" || architecture == "gemma3") {
        vector(prefix + "attn_q_norm.weight", head_dim, 1.0f);
        vector(prefix + "attn_k_norm.weight", head_dim, key_norm_gain);
      }
      if (architecture == "gemma3") {
        norm(prefix + "post_attention_norm.weight");
        norm(prefix + "post_ffw_norm.weight");
      }
      if (architecture == "qwen2") {
        vector(prefix + "attn_q.bias", n_heads * head_dim, 0.3f);
        vector(prefix + "attn_k.bias", n_kv_heads * head_dim, 0.3f);
        vector(prefix + "attn_v.bias", n_kv_heads * head_dim, 0.3f);
      }
      norm(prefix + "attn_norm.weight");
      if (fused) {
        matrix(prefix + "attn_qkv.weight", (n_heads + 2 * n_kv_heads) * head_dim, n_embd, 1.3f);
      } else {
        matrix(prefix + "attn_q.weight", n_heads * head_dim, n_embd, 1.5f);
        matrix(prefix + "attn_k.weight", n_kv_heads * head_dim, n_embd, 1.5f);
        matrix(prefix + "attn_v.weight", n_kv_heads * head_dim, n_embd, 1.0f);
      }
      matrix(prefix + "attn_output.weight", n_embd, n_heads * head_dim, 1.0f);
      norm(prefix + "ffn_norm.weight");
      if (fused) {
        matrix(prefix + "ffn_up.weight", 2 * n_ff, n_embd, 1.0f);
      } else {
        matrix(prefix + "ffn_gate.weight", n_ff, n_embd, 1.0f);
        matrix(prefix + "ffn_up.weight", n_ff, n_embd, 1.0f);
      }
      matrix(prefix + "ffn_down.weight", n_embd, n_ff, 1.0f);
    }
    return out.build();
  }

  void write(const std::string& path) const {
    const std::vector<uint8_t> all = bytes();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(all.data()), static_cast<std::streamsize>(all.size()));
  }

 private:
  static void add(GgufWriter* out, const std::string& name, const std::vector<uint64_t>& dims,
                  const std::vector<float>& values) {
    std::vector<uint8_t> data(values.size() * sizeof(float));
    std::memcpy(data.data(), values.data(), data.size());
    out->addTensor(name, 0, dims, data);
  }

  // SPM with byte tokens.
  void addVocabulary(GgufWriter* out) const {
    std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
    std::vector<int32_t> types = {2, 3, 3};
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof(name), "<0x%02X>", static_cast<unsigned>(byte));
      tokens.push_back(name);
      types.push_back(6);
    }
    for (const std::string& token : control_tokens) {
      tokens.push_back(token);
      types.push_back(3);
    }
    while (tokens.size() < n_vocab) {
      tokens.push_back("w" + std::to_string(tokens.size()));
      types.push_back(1);
    }
    for (const auto& [id, text] : renamed) {
      tokens[id] = text;
      types[id] = 1;
    }
    if (!chat_template.empty()) {
      out->addString("tokenizer.chat_template", chat_template);
    }
    out->addString("tokenizer.ggml.model", "llama");
    out->addStrings("tokenizer.ggml.tokens", tokens);
    out->addInt32s("tokenizer.ggml.token_type", types);
    out->addFloat32s("tokenizer.ggml.scores", std::vector<float>(tokens.size(), 0.0f));
    out->addUint32("tokenizer.ggml.bos_token_id", 1);
    out->addUint32("tokenizer.ggml.eos_token_id", eos);
  }
};

/// A Gemma of few layers whose window of 8 is soon full.
inline RandomLlama smallGemma() {
  RandomLlama gemma;
  gemma.architecture = "gemma3";
  gemma.n_layers = 5;
  gemma.local_window = 8;
  gemma.local_period = 3;  // two local layers, one global
  gemma.rope_base = 1e6f;
  return gemma;
}

/// Such a file on disk for the length of a scope.
class TemporaryModel {
 public:
  explicit TemporaryModel(const RandomLlama& llama)
      : path_(testing::TempDir() + "oriel-" + llama.architecture + "-" +
              std::to_string(llama.head_dim) + "-" + std::to_string(getpid()) + "-" +
              std::to_string(++count()) + ".gguf") {
    llama.write(path_);
  }
  ~TemporaryModel() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  static int& count() {
    static int count = 0;
    return count;
  }

  std::string path_;
};

}  // namespace oriel::test
