// A random draft model for a random Gemma 4, as a file. Tests only.
#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "support/random_llama.h"

namespace oriel_internal::test {

struct RandomDraft {
  explicit RandomDraft(const RandomLlama& model) : target(model) {}

  RandomLlama target;
  std::string architecture = "gemma4-assistant";
  std::vector<uint8_t> slides = {1, 1, 0};  ///< by layer
  uint32_t n_embd = 48;
  uint32_t n_heads = 4;
  uint32_t n_ff = 80;
  uint32_t seed = 5;
  /// These ids are drafted far more often than others.
  std::vector<uint32_t> favourites;

  GgufWriter writer() const {
    GgufWriter out;
    addKeys(&out);
    std::mt19937 random(seed);
    const auto matrix = [&](const std::string& name, uint32_t rows, uint32_t cols, float gain) {
      std::normal_distribution<float> normal(0.0f, gain / std::sqrt(static_cast<float>(cols)));
      std::vector<float> values(size_t{rows} * cols);
      for (float& value : values) {
        value = normal(random);
      }
      if (name == "token_embd.weight") {
        for (const uint32_t id : favourites) {
          for (uint32_t c = 0; c < cols; ++c) {
            values[size_t{id} * cols + c] *= 20;
          }
        }
      }
      out.addTensorF32(name, {cols, rows}, values);
    };
    const auto vector = [&](const std::string& name, uint32_t size, float gain) {
      std::uniform_real_distribution<float> around_one(0.7f, 1.3f);
      std::vector<float> values(size);
      for (float& value : values) {
        value = gain * around_one(random);
      }
      out.addTensorF32(name, {size}, values);
    };
    matrix("token_embd.weight", target.n_vocab, n_embd, 2.0f);
    vector("output_norm.weight", n_embd, 1.0f);
    matrix("nextn.pre_projection.weight", n_embd, 2 * target.n_embd, 1.0f);
    matrix("nextn.post_projection.weight", target.n_embd, n_embd, 1.0f);
    if (!target.rope_freqs.empty()) {
      out.addTensorF32("rope_freqs.weight", {target.rope_freqs.size()}, target.rope_freqs);
    }
    for (uint32_t layer = 0; layer < slides.size(); ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      const uint32_t head = slides[layer] != 0 ? target.sliding_head_dim : target.head_dim;
      for (const char* name : {"attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"}) {
        vector(prefix + name + ".weight", n_embd, 1.0f);
      }
      vector(prefix + "attn_q_norm.weight", head, 1.0f);
      vector(prefix + "layer_output_scale.weight", 1, 0.8f);
      matrix(prefix + "attn_q.weight", n_heads * head, n_embd, 1.5f);
      matrix(prefix + "attn_output.weight", n_embd, n_heads * head, 1.0f);
      matrix(prefix + "ffn_gate.weight", n_ff, n_embd, 1.0f);
      matrix(prefix + "ffn_up.weight", n_ff, n_embd, 1.0f);
      matrix(prefix + "ffn_down.weight", n_embd, n_ff, 1.0f);
    }
    return out;
  }

  void write(const std::string& path) const {
    const std::vector<uint8_t> bytes = writer().build();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

 private:
  void addKeys(GgufWriter* out) const {
    const auto count = [&](const char* key, uint32_t value) {
      out->addUint32(architecture + "." + key, value);
    };
    const auto layers = static_cast<uint32_t>(slides.size());
    out->addString("general.architecture", architecture);
    count("block_count", layers);
    count("nextn_predict_layers", layers);
    count("attention.shared_kv_layers", layers);
    count("embedding_length", n_embd);
    count("embedding_length_out", target.n_embd);
    count("embedding_length_per_layer_input", 0);
    count("feed_forward_length", n_ff);
    count("attention.head_count", n_heads);
    count("attention.head_count_kv", target.n_kv_heads);
    count("attention.key_length", target.head_dim);
    count("attention.value_length", target.head_dim);
    count("attention.key_length_swa", target.sliding_head_dim);
    count("attention.value_length_swa", target.sliding_head_dim);
    count("attention.sliding_window", target.local_window);
    count("context_length", target.context);
    out->addBools(architecture + ".attention.sliding_window_pattern", slides);
    out->addFloat32(architecture + ".attention.layer_norm_rms_epsilon", 1e-6f);
    out->addFloat32(architecture + ".rope.freq_base", target.rope_base);
  }
};

/// Such a file on disk for the length of a scope.
class TemporaryDraft {
 public:
  explicit TemporaryDraft(const RandomDraft& draft)
      : path_(testing::TempDir() + "oriel-draft-" + std::to_string(getpid()) + "-" +
              std::to_string(++count()) + ".gguf") {
    draft.write(path_);
  }
  explicit TemporaryDraft(const GgufWriter& writer) : TemporaryDraft(writer.build()) {}
  ~TemporaryDraft() { std::remove(path_.c_str()); }
  TemporaryDraft(const TemporaryDraft&) = delete;
  TemporaryDraft& operator=(const TemporaryDraft&) = delete;
  const char* path() const { return path_.c_str(); }

 private:
  explicit TemporaryDraft(const std::vector<uint8_t>& bytes)
      : path_(testing::TempDir() + "oriel-draft-" + std::to_string(getpid()) + "-" +
              std::to_string(++count()) + ".gguf") {
    std::ofstream file(path_, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  static int& count() {
    static int count = 0;
    return count;
  }

  std::string path_;
};

}  // namespace oriel_internal::test
