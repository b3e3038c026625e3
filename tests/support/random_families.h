// Random models of many families, and their draft models, as files. Tests only.
#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/random_llama.h"
#include "support/target.h"

namespace oriel_internal::test {

// A random draft model for a random Gemma 4, as a file. Tests only.

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

// A small random model of each family, with its distinguishing keys set to values that affect the logits. Tests only.

struct RandomFamily {
  std::string name;
  RandomLlama model;
};

/// Short convolutions alternating with attention.
inline RandomLlama smallLfm2() {
  RandomLlama lfm2;
  lfm2.architecture = "lfm2";
  lfm2.n_layers = 6;
  lfm2.kv_heads_by_layer = {0, 0, 2, 0, 2, 0};
  lfm2.rope_base = 1e6f;
  return lfm2;
}

/// Three windowed layers and one with full attention and no RoPE: only files of 64 layers have that.
inline RandomLlama smallExaone4OfWindows() {
  RandomLlama exaone4;
  exaone4.architecture = "exaone4";
  exaone4.n_layers = 64;
  exaone4.n_embd = 32;
  exaone4.n_heads = 4;
  exaone4.head_dim = 8;
  exaone4.n_ff = 24;
  exaone4.local_window = 7;
  exaone4.post_norm_gain = 0.2f;  // 128 branches: at 1 an f16 cache alone costs 8e-3 of the logits
  return exaone4;
}

/// Each with experts of another number, width and choice.
inline void addExpertFamilies(std::vector<RandomFamily>* families) {
  RandomLlama model;
  model.n_layers = 3;
  model.architecture = "qwen3moe";
  model.n_experts = 7;
  model.experts_used = 3;
  families->push_back({"qwen3moe", model});
  model.n_experts = 5;
  model.experts_used = 1;
  model.expert_ff = 24;
  families->push_back({"qwen3moe of one expert a token", model});
  model.experts_used = 5;
  families->push_back({"qwen3moe of all experts", model});
  model.architecture = "olmoe";
  model.n_kv_heads = 4;
  model.tied_output = false;
  model.n_layers = 2;
  model.n_experts = 6;
  model.experts_used = 2;
  families->push_back({"olmoe", model});
  model = RandomLlama();
  model.n_layers = 3;
  model.architecture = "granitemoe";
  model.embedding_scale = 12;
  model.residual_scale = 0.3f;
  model.attention_scale = 0.2f;
  model.logit_scale = 6;
  model.n_experts = 6;
  families->push_back({"granitemoe", model});
  model.shared_expert_ff = 72;
  families->push_back({"granitemoe of a shared expert", model});
  model = smallLfm2();
  model.architecture = "lfm2moe";
  model.n_layers = 4;
  model.kv_heads_by_layer = {0, 2, 0, 2};
  model.n_experts = 5;
  model.dense_layers = 2;
  model.router_bias = true;
  model.router_gain = 1;  // sigmoids of larger numbers saturate
  families->push_back({"lfm2moe", model});
  model.dense_layers = 0;
  model.router_bias = false;
  families->push_back({"lfm2moe without dense layers", model});
}

/// Gemma 4 with and without each of its parts.
inline void addGemma4Families(std::vector<RandomFamily>* families) {
  RandomLlama model;
  model.architecture = "gemma4";
  model.n_layers = 7;
  model.head_dim = 32;
  model.sliding_head_dim = 16;
  model.local_window = 8;
  model.rope_base = 1e6f;
  model.rope_freqs = std::vector<float>(16, 1e30f);
  std::fill_n(model.rope_freqs.begin(), 5, 1.0f);
  model.slides_by_layer = {1, 0, 1, 0, 1, 1, 0};
  model.n_ff_by_layer = {96, 96, 96, 96, 160, 160, 160};
  model.shared_layers = 3;
  model.layer_input = 12;
  model.logit_cap = 3;
  model.key_norm_gain = 0.15f;  // scores are not scaled
  families->push_back({"gemma4", model});
  model.shared_layers_have_keys = true;
  model.layer_input = 0;
  families->push_back({"gemma4 without inputs of layers", model});
  model.shared_layers = 0;
  model.layer_input = 32;
  model.keys_are_values = {1, 4};
  families->push_back({"gemma4 without shared layers", model});
  model.keys_are_values = {3};
  model.shared_layers = 3;
  model.kv_heads_by_layer = {4, 1, 4, 1, 4, 4, 1};
  families->push_back({"gemma4 of values from keys", model});
}

/// States of both rules: alone, parallel to attention, and alternating with it.
inline void addStateFamilies(std::vector<RandomFamily>* families) {
  RandomLlama model;
  model.architecture = "qwen35";
  model.n_layers = 8;
  model.rope_dims = 8;
  model.rope_sections = {2, 1, 1, 0};
  model.state = {6, 2, 12, 8};
  model.state.delta = true;
  families->push_back({"qwen35", model});
  model.n_layers = 5;
  model.state = {3, 3, 33, 20, 3};
  model.state.delta = true;
  model.state.by_layer = {0, 1, 1, 0, 1};
  model.state.extra_layers = 2;
  model.rope_sections = {1, 1, 1, 1};  // the last pair does not rotate
  model.tied_output = false;
  families->push_back({"qwen35 of a list of layers", model});
  model = RandomLlama();
  model.architecture = "granitehybrid";
  model.n_layers = 5;
  model.embedding_scale = 12;
  model.attention_scale = 0.2f;
  model.residual_scale = 0.3f;
  model.logit_scale = 6;
  model.no_rope = true;
  model.kv_heads_by_layer = {0, 2, 0, 0, 2};
  model.state = {6, 2, 12, 8};
  families->push_back({"granitehybrid", model});
  model.state = {4, 1, 7, 32, 2};
  model.no_rope = false;
  model.n_experts = 6;
  model.shared_expert_ff = 72;
  families->push_back({"granitehybrid of experts and RoPE", model});
  model = RandomLlama();
  model.architecture = "falcon-h1";
  model.n_layers = 3;
  model.rope_base = 1e11f;
  model.state = {4, 1, 24, 10};
  model.state.beside = true;
  model.state.normed = false;
  families->push_back({"falcon-h1", model});
  model.state.key_heads = 2;
  model.state.normed = true;
  model.state.has_bias = false;
  families->push_back({"falcon-h1 with a norm and without a bias", model});
  model = RandomLlama();
  model.architecture = "mamba2";
  model.n_layers = 4;
  model.n_heads = model.n_kv_heads = model.n_ff = 0;
  model.state = {8, 2, 16, 16};
  families->push_back({"mamba2", model});
}

/// Latents with every kind of query and every layout of key matrices.
inline void addLatentFamilies(std::vector<RandomFamily>* families) {
  RandomLlama model;
  model.architecture = "deepseek2";
  model.n_layers = 3;
  model.n_kv_heads = 1;
  model.head_dim = 40;
  model.rope_dims = 16;
  model.latent_dim = 32;
  model.value_dim = 20;
  model.query_latent_dim = 48;
  model.tied_output = false;
  model.n_experts = 6;
  model.shared_expert_ff = 40;
  model.dense_layers = 1;
  model.router_bias = true;
  model.router_gain = 2;
  model.expert_gating = 2;
  model.expert_weights_norm = true;
  model.expert_weights_scale = 2.5f;
  families->push_back({"deepseek2", model});
  model.query_latent_dim = 0;
  model.router_bias = false;
  model.router_gain = 3;
  model.expert_gating = 0;
  model.expert_weights_norm = false;
  model.expert_weights_scale = 0;
  model.shared_expert_ff = 80;
  model.yarn_factor = 16;
  model.yarn_original = 40;
  model.yarn_log_multiplier = 0.0707f;
  families->push_back({"deepseek2 of queries from inputs", model});
  model.joined_latents = true;
  model.shared_expert_ff = 0;
  model.dense_layers = 0;
  families->push_back({"deepseek2 of joined matrices", model});
  model = RandomLlama();
  model.architecture = "minicpm3";
  model.n_layers = 3;
  model.n_kv_heads = 4;
  model.head_dim = 24;
  model.rope_dims = 8;
  model.latent_dim = 32;
  model.query_latent_dim = 24;
  model.joined_latents = true;
  model.short_factors = {1, 1.2f, 2, 4};
  model.long_factors = std::vector<float>(4, 30);
  families->push_back({"minicpm3", model});
}

inline std::vector<RandomFamily> makeRandomFamilies() {
  std::vector<RandomFamily> families;
  families.reserve(64);
  const auto add = [&](const std::string& name, const std::string& architecture) {
    RandomLlama model;
    model.architecture = architecture;
    model.n_layers = 5;
    families.push_back({name, model});
    return &families.back().model;
  };
  RandomLlama* model = add("granite", "granite");
  model->embedding_scale = 12;
  model->attention_scale = 0.2f;  // instead of one over the root of 16
  model->residual_scale = 0.3f;
  model->logit_scale = 6;
  model = add("granite of one key", "granite");
  model->logit_scale = 3;
  model = add("granite without RoPE", "granite");
  model->logit_scale = 8;
  model->embedding_scale = 3;
  model->no_rope = true;
  model = add("granite published as a hybrid", "granite");
  model->logit_scale = 4;
  model->kv_heads_by_layer = {2, 2, 2, 2, 2};
  model->hybrid = true;
  model = add("minicpm", "minicpm");
  model->embedding_scale = 5;
  model->residual_scale = 0.4f;
  model->logit_scale = 1.5f;
  add("minicpm without keys", "minicpm");
  model = add("minicpm of long texts", "minicpm");  // and sessions of short ones
  model->short_factors = {1, 1, 1.2f, 1.5f, 2, 3, 4, 5};
  model->long_factors = std::vector<float>(8, 30);
  model = add("ernie4_5", "ernie4_5");
  model->rope_base = 5e5f;
  model = add("hunyuan-dense", "hunyuan-dense");
  model->rope_base = 1e4f;
  model->key_norm_gain = 2;
  model = add("hunyuan-dense of a longer context", "hunyuan-dense");
  model->rope_alpha = 50;
  model = add("mistral3", "mistral3");
  model->yarn_factor = 16;
  model->yarn_original = 9;  // queries are scaled from the tenth token on
  model->yarn_log_multiplier = 1;
  model->temperature_scale = 0.3f;
  model = add("mistral3 of another amplitude", "mistral3");
  model->yarn_factor = 4;
  model->yarn_original = 300;
  model = add("exaone4", "exaone4");
  model->rope_freqs = {1, 1, 1.5f, 2, 4, 7.5f, 8, 8};
  add("olmo2", "olmo2")->tied_output = false;
  model = add("olmo3", "olmo2");
  model->tied_output = false;
  model->local_window = 8;
  model->yarn_factor = 8;
  model->yarn_original = 40;
  model = add("gemma2", "gemma2");
  model->local_window = 8;
  model->score_cap = 1.5f;  // low enough to have an effect
  model->logit_cap = 2;
  families.push_back({"lfm2", smallLfm2()});
  addExpertFamilies(&families);
  addGemma4Families(&families);
  addStateFamilies(&families);
  addLatentFamilies(&families);
  return families;
}

/// Granite to latents, most with five layers; windows are 8.
inline const std::vector<RandomFamily>& randomFamilies() {
  static const std::vector<RandomFamily> families = makeRandomFamilies();
  return families;
}

/// The parameter of suites: gtest copies it a dozen times and prints it at program start.
using FamilyParam = const RandomFamily*;

inline std::vector<FamilyParam> familyParams() {
  std::vector<FamilyParam> params;
  for (const RandomFamily& family : randomFamilies()) {
    params.push_back(&family);
  }
  return params;
}
/// The families with these names, in their own order.
inline std::vector<FamilyParam> familyParams(const std::vector<std::string>& names) {
  std::vector<FamilyParam> params;
  for (const RandomFamily& family : randomFamilies()) {
    if (std::find(names.begin(), names.end(), family.name) != names.end()) {
      params.push_back(&family);
    }
  }
  return params;
}

/// All families with ORIEL_TEST_ALL, otherwise one or two of each kind of memory and of experts.
inline std::vector<FamilyParam> familiesOfEachKind() {
  return allCases() ? familyParams()
                    : familyParams({"granite", "gemma2", "exaone4", "hunyuan-dense", "lfm2",
                                    "lfm2moe", "qwen3moe of one expert a token", "olmoe",
                                    "granitemoe of a shared expert", "gemma4",
                                    "gemma4 of values from keys", "qwen35", "granitehybrid",
                                    "falcon-h1", "mamba2", "deepseek2", "minicpm3"});
}

inline std::string familyName(const testing::TestParamInfo<FamilyParam>& tested) {
  std::string name = tested.param->name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

/// The model of the named family.
inline RandomLlama randomFamily(const std::string& name) {
  for (const RandomFamily& family : randomFamilies()) {
    if (family.name == name) {
      return family.model;
    }
  }
  throw std::runtime_error("no family " + name);
}

}  // namespace oriel_internal::test
