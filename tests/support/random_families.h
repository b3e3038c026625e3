// A small random model of each family, with its distinguishing keys set to values that affect the logits. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/random_llama.h"

namespace oriel_internal::test {

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
