// Recurrent states of random models: keys and tensors of their files. Tests only.
#pragma once

#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/gguf_writer.h"
#include "tests/support/gguf_writer.h"

namespace oriel_internal::test {

struct RandomState {
  uint32_t heads = 0;  ///< 0: no layer has a state
  uint32_t key_heads = 1;
  uint32_t key_dim = 12;
  uint32_t value_dim = 8;
  uint32_t taps = 4;
  bool delta = false;   ///< the gated delta rule; otherwise Mamba-2
  bool beside = false;  ///< in every layer, parallel to attention
  bool normed = true;
  bool has_bias = true;       ///< of the convolution; Mamba-2
  uint32_t interval = 0;      ///< every N-th layer attends; 0: not in the file
  uint32_t extra_layers = 0;  ///< prediction blocks after the others
  /// 1: the layer has a state; a list in the file instead of the interval.
  std::vector<uint32_t> by_layer = {};

  uint32_t values() const { return heads * value_dim; }
  uint32_t channels() const { return 2 * key_heads * key_dim + values(); }
};

inline void addStateKeys(const RandomState& state, const std::string& architecture,
                         GgufWriter* out) {
  const auto count = [&](const char* key, uint32_t value) {
    out->addUint32(architecture + "." + key, value);
  };
  count("ssm.conv_kernel", state.taps);
  count("ssm.state_size", state.key_dim);
  count("ssm.group_count", state.key_heads);
  count("ssm.time_step_rank", state.heads);
  count("ssm.inner_size", state.values());
  if (state.interval != 0) {
    count("full_attention_interval", state.interval);
  }
  if (state.extra_layers != 0) {
    count("nextn_predict_layers", state.extra_layers);
  }
  if (!state.by_layer.empty()) {
    std::vector<uint8_t> flags(state.by_layer.begin(), state.by_layer.end());
    flags.resize(flags.size() + state.extra_layers);
    out->addBools(architecture + ".attention.recurrent_layers", flags);
  }
}

/// add(name, dims, values) for all tensors of one layer's state. Heads forget within one to some hundred tokens.
template <typename Add>
void addStateTensors(const RandomState& state, uint32_t n_embd, std::mt19937* random,
                     const Add& add) {
  const auto normal = [&](const std::string& name, const std::vector<uint64_t>& dims,
                          float deviation) {
    std::normal_distribution<float> draw(0.0f, deviation);
    size_t count = 1;
    for (const uint64_t dim : dims) {
      count *= dim;
    }
    std::vector<float> values(count);
    for (float& value : values) {
      value = draw(*random);
    }
    add(name, dims, values);
  };
  const auto between = [&](const std::string& name, const std::vector<uint64_t>& dims, float low,
                           float high) {
    std::uniform_real_distribution<float> draw(low, high);
    std::vector<float> values(dims.size() == 2 ? dims[0] * dims[1] : dims[0]);
    for (float& value : values) {
      value = draw(*random);
    }
    add(name, dims, values);
  };
  const float by_width = 1 / std::sqrt(static_cast<float>(n_embd));
  const uint32_t heads = state.heads, values = state.values();
  normal("ssm_conv1d.weight", {state.taps, state.channels()}, 0.6f);
  between("ssm_dt.bias", {heads}, -3, 1);
  if (state.delta) {
    normal("attn_qkv.weight", {n_embd, state.channels()}, 1.5f * by_width);
    normal("attn_gate.weight", {n_embd, values}, 1.5f * by_width);
    normal("ssm_beta.weight", {n_embd, heads}, by_width);
    normal("ssm_alpha.weight", {n_embd, heads}, by_width);
    between("ssm_a", {heads}, -2, -0.1f);
    between("ssm_norm.weight", {state.value_dim}, 0.7f, 1.3f);
  } else {
    normal("ssm_in.weight", {n_embd, values + state.channels() + heads}, 1.5f * by_width);
    if (state.has_bias) {
      normal("ssm_conv1d.bias", {state.channels()}, 0.3f);
    }
    between("ssm_a", {1, heads}, -2, -0.1f);
    between("ssm_d", {1, heads}, 0.5f, 1.5f);
    if (state.normed) {
      between("ssm_norm.weight", {values / state.key_heads, state.key_heads}, 0.7f, 1.3f);
    }
  }
  normal("ssm_out.weight", {values, n_embd}, 1 / std::sqrt(static_cast<float>(values)));
}

// A llama of any shape, or a relative, with random weights, as a file. Tests only.

/// One of ChatML's templates.
constexpr char kChatMlTemplate[] =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ "
    "'<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' "
    "}}{% "
    "endif %}";

struct RandomLlama {
  std::string architecture = "llama";
  uint32_t n_layers = 2;
  uint32_t n_embd = 64;
  uint32_t n_heads = 4;
  uint32_t n_kv_heads = 2;
  uint32_t head_dim = 16;
  uint32_t n_ff = 96;
  std::vector<uint32_t> n_ff_by_layer;  ///< empty: n_ff everywhere
  uint32_t says_n_ff = 0;               ///< written to the file instead; 0: the real value
  uint32_t n_vocab = 320;
  uint32_t context = 512;
  bool tied_output = true;
  uint32_t local_window = 0;  ///< gemma3 has one
  uint32_t local_period = 0;  ///< 0: not in the file
  float rope_base = 0;        ///< 0: not in the file
  float rope_factor = 0;      ///< linear scaling; 0: none
  std::vector<float> rope_freqs;
  uint32_t rope_dims = 0;          ///< 0: not in the file
  uint32_t sliding_rope_dims = 0;  ///< of layers with a window; 0: not in the file
  float key_norm_gain = 1;         ///< for architectures with norms over heads
  float post_norm_gain = 1;        ///< for architectures with norms after attention and FFN
  // Keys of some architectures; 0: not in the file.
  float embedding_scale = 0;
  float residual_scale = 0;
  float attention_scale = 0;
  float logit_scale = 0;
  float score_cap = 0;
  float logit_cap = 0;
  float yarn_factor = 0;
  uint32_t yarn_original = 0;  ///< tokens
  float yarn_log_multiplier = 0;
  float temperature_scale = 0;
  float rope_alpha = 0;
  bool no_rope = false;  ///< for granite
  bool hybrid = false;   ///< missing parts are counted, as in dense Granites of 4.0
  std::vector<float> short_factors, long_factors;  ///< of longrope
  /// A list instead of one number; 0 in lfm2: a short convolution.
  std::vector<uint32_t> kv_heads_by_layer;
  /// Mixtures of experts; 0: none. The first `dense_layers` have a feed-forward instead.
  uint32_t n_experts = 0;
  uint32_t experts_used = 2;
  uint32_t expert_ff = 40;
  uint32_t shared_expert_ff = 0;
  uint32_t dense_layers = 0;
  bool router_bias = false;
  float router_gain = 3;  ///< clear choices
  // For Gemma 4: layers with window local_window have heads of sliding_head_dim; the last `shared_layers` have no keys;
  // some layers take values from keys.
  std::vector<uint32_t> slides_by_layer;  ///< 1: it does
  uint32_t sliding_head_dim = 0;          ///< 0: head_dim
  uint32_t shared_layers = 0;
  uint32_t layer_input = 0;
  std::vector<uint32_t> keys_are_values;  ///< layers
  bool shared_layers_have_keys = false;   ///< which are ignored
  RandomState state;
  std::vector<int32_t> rope_sections;  ///< of qwen35
  // For latent attention: heads have head_dim values, rope_dims of them rotated.
  uint32_t latent_dim = 0;
  uint32_t value_dim = 0;         ///< per head; 0: not in the file
  uint32_t query_latent_dim = 0;  ///< 0: queries come from the input
  bool joined_latents = false;    ///< key and value matrices are one tensor
  bool expert_weights_norm = false;
  float expert_weights_scale = 0;
  uint32_t expert_gating = 0;  ///< 0: not in the file
  uint32_t seed = 1;
  uint32_t eos = 2;
  std::string chat_template;
  int pooling_type = -1;                         ///< -1: not in the file
  bool ends_texts = false;                       ///< the file requires EOS after a text
  std::vector<std::string> control_tokens = {};  ///< after the byte tokens
  /// Ids with another text, as ordinary tokens.
  std::vector<std::pair<uint32_t, std::string>> renamed = {};

  /// To be bent.
  GgufWriter writer() const {
    std::mt19937 random(seed);
    GgufWriter out;
    addKeys(&out);
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
    matrix("token_embd.weight", n_vocab, n_embd,
           embeddingDeviation() * std::sqrt(static_cast<float>(n_embd)));
    norm(is({"lfm2", "lfm2moe"}) ? "token_embd_norm.weight" : "output_norm.weight");
    if (!tied_output) {
      matrix("output.weight", n_vocab, n_embd, 2.0f);
    }
    if (!rope_freqs.empty()) {
      add(&out, "rope_freqs.weight", {rope_freqs.size()}, rope_freqs);
    }
    if (!short_factors.empty()) {
      add(&out, "rope_factors_short.weight", {short_factors.size()}, short_factors);
      add(&out, "rope_factors_long.weight", {long_factors.size()}, long_factors);
    }
    const bool fused = architecture == "phi3";
    if (layer_input != 0) {
      matrix("per_layer_token_embd.weight", n_vocab, n_layers * layer_input, 1.0f);
      matrix("per_layer_model_proj.weight", n_layers * layer_input, n_embd, 1.0f);
      vector("per_layer_proj_norm.weight", layer_input, 1.0f);
    }
    for (uint32_t layer = 0; layer < n_layers; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      const bool convolves = !attends(layer);
      const uint32_t ff = n_ff_by_layer.empty() ? n_ff : n_ff_by_layer[layer];
      const uint32_t kv_heads = kv_heads_by_layer.empty() ? n_kv_heads : kv_heads_by_layer[layer];
      const uint32_t head = headOf(layer);
      const bool has_keys = layer < n_layers - shared_layers || shared_layers_have_keys;
      if (is({"qwen3", "gemma3", "hunyuan-dense", "exaone4", "lfm2", "lfm2moe", "qwen3moe",
              "gemma4", "qwen35"}) &&
          !convolves) {
        vector(prefix + "attn_q_norm.weight", head, 1.0f);
        if (has_keys) {
          vector(prefix + "attn_k_norm.weight", head, key_norm_gain);
        }
      }
      if (is({"olmo2", "olmoe"})) {
        vector(prefix + "attn_q_norm.weight", n_heads * head_dim, 1.0f);
        vector(prefix + "attn_k_norm.weight", n_kv_heads * head_dim, key_norm_gain);
      }
      if (is({"gemma4"}) && layer % 3 != 2) {
        vector(prefix + "layer_output_scale.weight", 1, 0.8f);
      }
      if (layer_input != 0) {
        matrix(prefix + "inp_gate.weight", layer_input, n_embd, 1.0f);
        matrix(prefix + "proj.weight", n_embd, layer_input, 1.0f);
        norm(prefix + "post_norm.weight");
      }
      if (is({"gemma3", "gemma2", "exaone4", "olmo2", "gemma4"})) {
        vector(prefix + "post_attention_norm.weight", n_embd, post_norm_gain);
        vector(prefix + "post_ffw_norm.weight", n_embd, post_norm_gain);
      }
      const bool pre_norms = !is({"exaone4", "olmo2"});
      if (architecture == "qwen2") {
        vector(prefix + "attn_q.bias", n_heads * head_dim, 0.3f);
        vector(prefix + "attn_k.bias", n_kv_heads * head_dim, 0.3f);
        vector(prefix + "attn_v.bias", n_kv_heads * head_dim, 0.3f);
      }
      if (pre_norms) {
        norm(prefix + "attn_norm.weight");
      }
      if (convolves && state.heads == 0) {
        matrix(prefix + "shortconv.in_proj.weight", 3 * n_embd, n_embd, 1.5f);
        matrix(prefix + "shortconv.conv.weight", n_embd, 3, 1.0f);
        matrix(prefix + "shortconv.out_proj.weight", n_embd, n_embd, 1.0f);
      } else if (latent_dim != 0) {
        addLatents(&out, prefix, &random);
      } else if (fused) {
        matrix(prefix + "attn_qkv.weight", (n_heads + 2 * n_kv_heads) * head_dim, n_embd, 1.3f);
      } else if (!convolves) {
        // Each head also has a gate.
        matrix(prefix + "attn_q.weight", (is({"qwen35"}) ? 2 : 1) * n_heads * head, n_embd, 1.5f);
        if (has_keys) {
          matrix(prefix + "attn_k.weight", kv_heads * head, n_embd, 1.5f);
        }
        if (has_keys && std::find(keys_are_values.begin(), keys_are_values.end(), layer) ==
                            keys_are_values.end()) {
          matrix(prefix + "attn_v.weight", kv_heads * head, n_embd, 1.0f);
        }
      }
      if (!convolves) {
        matrix(prefix + "attn_output.weight", n_embd,
               n_heads * (latent_dim != 0 ? valueDim() : head), 1.0f);
      }
      if (state.heads != 0 && (state.beside || convolves)) {
        addStateTensors(
            state, n_embd, &random,
            [&](const std::string& name, const std::vector<uint64_t>& dims,
                const std::vector<float>& values) { add(&out, prefix + name, dims, values); });
      }
      if (is({"mamba2"})) {
        continue;
      }
      if (pre_norms) {
        norm(prefix + (is({"qwen35"})      ? "post_attention_norm.weight"
                       : is({"falcon-h1"}) ? "ffn_norm"
                                           : "ffn_norm.weight"));
      }
      if (n_experts != 0 && layer >= dense_layers) {
        addExperts(&out, prefix, &random);
      } else if (fused) {
        matrix(prefix + "ffn_up.weight", 2 * ff, n_embd, 1.0f);
      } else {
        matrix(prefix + "ffn_gate.weight", ff, n_embd, 1.0f);
        matrix(prefix + "ffn_up.weight", ff, n_embd, 1.0f);
      }
      if (n_experts == 0 || layer < dense_layers) {
        matrix(prefix + "ffn_down.weight", n_embd, ff, 1.0f);
      }
    }
    for (uint32_t extra = 0; extra < state.extra_layers; ++extra) {
      const std::string prefix = "blk." + std::to_string(n_layers + extra) + ".";
      matrix(prefix + "nextn.eh_proj.weight", n_embd, 2 * n_embd, 1.0f);
      for (const char* name : {"nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm", "attn_norm",
                               "post_attention_norm"}) {
        norm(prefix + name + ".weight");
      }
      vector(prefix + "attn_q_norm.weight", head_dim, 1.0f);
      vector(prefix + "attn_k_norm.weight", head_dim, key_norm_gain);
      matrix(prefix + "attn_q.weight", 2 * n_heads * head_dim, n_embd, 1.5f);
      matrix(prefix + "attn_k.weight", n_kv_heads * head_dim, n_embd, 1.5f);
      matrix(prefix + "attn_v.weight", n_kv_heads * head_dim, n_embd, 1.0f);
      matrix(prefix + "attn_output.weight", n_embd, n_heads * head_dim, 1.0f);
      matrix(prefix + "ffn_gate.weight", n_ff, n_embd, 1.0f);
      matrix(prefix + "ffn_up.weight", n_ff, n_embd, 1.0f);
      matrix(prefix + "ffn_down.weight", n_embd, n_ff, 1.0f);
    }
    return out;
  }

  bool attends(uint32_t layer) const {
    if (!state.by_layer.empty()) {
      return state.by_layer[layer] == 0;
    }
    if (state.delta) {
      return (layer + 1) % (state.interval != 0 ? state.interval : 4) == 0;
    }
    return !is({"mamba2"}) && (kv_heads_by_layer.empty() || kv_heads_by_layer[layer] != 0);
  }

  std::vector<uint8_t> bytes() const { return writer().build(); }

  void write(const std::string& path) const {
    const std::vector<uint8_t> all = bytes();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(all.data()), static_cast<std::streamsize>(all.size()));
  }

 private:
  bool is(std::initializer_list<const char*> names) const {
    return std::find(names.begin(), names.end(), architecture) != names.end();
  }
  bool slides(uint32_t layer) const {
    return !slides_by_layer.empty() && slides_by_layer[layer] != 0;
  }
  uint32_t headOf(uint32_t layer) const {
    return slides(layer) && sliding_head_dim != 0 ? sliding_head_dim : head_dim;
  }

  uint32_t valueDim() const { return value_dim != 0 ? value_dim : n_embd / n_heads; }

  void addLatents(GgufWriter* out, const std::string& prefix, std::mt19937* random) const {
    const auto tensor = [&](const std::string& name, const std::vector<uint64_t>& dims, float gain,
                            uint32_t terms) {
      std::normal_distribution<float> normal(0.0f, gain / std::sqrt(static_cast<float>(terms)));
      uint64_t count = 1;
      for (const uint64_t dim : dims) {
        count *= dim;
      }
      std::vector<float> values(static_cast<size_t>(count));
      for (float& value : values) {
        value = normal(*random);
      }
      add(out, prefix + name, dims, values);
    };
    const auto norm = [&](const std::string& name, uint32_t size) {
      std::uniform_real_distribution<float> around_one(0.7f, 1.3f);
      std::vector<float> values(size);
      for (float& value : values) {
        value = around_one(*random);
      }
      add(out, prefix + name, {size}, values);
    };
    const uint32_t plain = head_dim - rope_dims;
    if (query_latent_dim == 0) {
      tensor("attn_q.weight", {n_embd, n_heads * head_dim}, 1.5f, n_embd);
    } else {
      tensor("attn_q_a.weight", {n_embd, query_latent_dim}, 1, n_embd);
      norm("attn_q_a_norm.weight", query_latent_dim);
      tensor("attn_q_b.weight", {query_latent_dim, n_heads * head_dim}, 1.5f, query_latent_dim);
    }
    tensor("attn_kv_a_mqa.weight", {n_embd, latent_dim + rope_dims}, 1.5f, n_embd);
    norm("attn_kv_a_norm.weight", latent_dim);
    if (joined_latents) {
      tensor("attn_kv_b.weight", {latent_dim, n_heads * (plain + valueDim())}, 1.3f, latent_dim);
    } else {
      tensor("attn_k_b.weight", {plain, latent_dim, n_heads}, 1.5f, latent_dim);
      tensor("attn_v_b.weight", {latent_dim, valueDim(), n_heads}, 1, latent_dim);
    }
  }

  void addExperts(GgufWriter* out, const std::string& prefix, std::mt19937* random) const {
    const auto tensor = [&](const std::string& name, const std::vector<uint64_t>& dims,
                            float deviation) {
      std::normal_distribution<float> normal(0.0f, deviation);
      size_t count = 1;
      for (const uint64_t dim : dims) {
        count *= dim;
      }
      std::vector<float> values(count);
      for (float& value : values) {
        value = normal(*random);
      }
      add(out, prefix + name, dims, values);
    };
    const float by_width = 1 / std::sqrt(static_cast<float>(n_embd));
    tensor("ffn_gate_inp.weight", {n_embd, n_experts}, router_gain * by_width);
    if (router_bias) {
      tensor("exp_probs_b.bias", {n_experts}, 0.3f);
    }
    tensor("ffn_gate_exps.weight", {n_embd, expert_ff, n_experts}, by_width);
    tensor("ffn_up_exps.weight", {n_embd, expert_ff, n_experts}, by_width);
    tensor("ffn_down_exps.weight", {expert_ff, n_embd, n_experts},
           1 / std::sqrt(static_cast<float>(expert_ff)));
    if (shared_expert_ff != 0) {
      tensor("ffn_gate_shexp.weight", {n_embd, shared_expert_ff}, by_width);
      tensor("ffn_up_shexp.weight", {n_embd, shared_expert_ff}, by_width);
      tensor("ffn_down_shexp.weight", {shared_expert_ff, n_embd},
             1 / std::sqrt(static_cast<float>(shared_expert_ff)));
    }
  }

  /// Before the architecture's embedding factor.
  float embeddingDeviation() const {
    if (embedding_scale != 0 || is({"minicpm", "minicpm3"})) {
      return 1 / (embedding_scale != 0 ? embedding_scale : 12.0f);
    }
    return is({"gemma2", "gemma4"}) ? 1 / std::sqrt(static_cast<float>(n_embd)) : 1.0f;
  }

  void addKeys(GgufWriter* out) const {
    const auto count = [&](const char* key, uint32_t value) {
      out->addUint32(architecture + "." + key, value);
    };
    const auto real = [&](const char* key, float value) {
      if (value != 0) {
        out->addFloat32(architecture + "." + key, value);
      }
    };
    out->addString("general.architecture", architecture);
    count("block_count", n_layers + state.extra_layers);
    count("embedding_length", n_embd);
    if (n_ff_by_layer.empty()) {
      const bool of_experts =
          is({"granitemoe", "olmoe"}) || (n_experts != 0 && is({"granitehybrid"}));
      count("feed_forward_length", says_n_ff != 0 ? says_n_ff : of_experts ? expert_ff : n_ff);
    } else {
      out->addInt32s(architecture + ".feed_forward_length",
                     {n_ff_by_layer.begin(), n_ff_by_layer.end()});
    }
    count("attention.head_count", n_heads);
    if (is({"mamba2"})) {  // files do not state heads
    } else if (kv_heads_by_layer.empty()) {
      count("attention.head_count_kv", n_kv_heads);
    } else {
      out->addInt32s(architecture + ".attention.head_count_kv",
                     {kv_heads_by_layer.begin(), kv_heads_by_layer.end()});
    }
    if (is({"lfm2", "lfm2moe"})) {
      count("shortconv.l_cache", 3);
    }
    addExpertKeys(out);
    addGemma4Keys(out);
    if (state.heads != 0) {
      addStateKeys(state, architecture, out);
    }
    if (!rope_sections.empty()) {
      out->addInt32s(architecture + ".rope.dimension_sections", rope_sections);
    }
    if (hybrid) {
      out->addBool(architecture + ".rope.scaling.finetuned", true);
      count("expert_count", 0);
      count("expert_used_count", 0);
      count("expert_shared_feed_forward_length", n_ff);
      count("ssm.conv_kernel", 4);
      count("ssm.group_count", 1);
      count("ssm.inner_size", 2 * n_embd);
      count("ssm.state_size", 256);
      count("ssm.time_step_rank", 128);
    }
    if (latent_dim != 0) {
      addLatentKeys(out);
    } else if (!is({"lfm2", "lfm2moe", "exaone4", "olmo2", "olmoe",
                    "mamba2"})) {  // their heads are as wide as the model
      count("attention.key_length", head_dim);
      count("attention.value_length", head_dim);
    }
    count("context_length", context);
    real("attention.layer_norm_rms_epsilon", 1e-5f);
    if (local_window != 0) {
      count("attention.sliding_window", local_window);
    }
    if (local_period != 0) {
      count("attention.sliding_window_pattern", local_period);
    }
    real("rope.freq_base", rope_base);
    if (rope_dims != 0) {
      count("rope.dimension_count", rope_dims);
    }
    if (sliding_rope_dims != 0) {
      count("rope.dimension_count_swa", sliding_rope_dims);
    }
    if (rope_factor != 0) {
      out->addString(architecture + ".rope.scaling.type", "linear");
      real("rope.scaling.factor", rope_factor);
    }
    if (yarn_factor != 0) {
      out->addString(architecture + ".rope.scaling.type", "yarn");
      real("rope.scaling.factor", yarn_factor);
      count("rope.scaling.original_context_length", yarn_original);
      real("rope.scaling.yarn_log_multiplier", yarn_log_multiplier);
    }
    if (!short_factors.empty()) {
      out->addString(architecture + ".rope.scaling.type", "longrope");
    }
    if (no_rope) {
      out->addBool(architecture + ".rope.scaling.finetuned", false);
    }
    real("rope.scaling.alpha", rope_alpha);
    real("embedding_scale", embedding_scale);
    real("residual_scale", residual_scale);
    real("attention.scale", attention_scale);
    real("logit_scale", logit_scale);
    real("attn_logit_softcapping", score_cap);
    real("final_logit_softcapping", logit_cap);
    real("attention.temperature_scale", temperature_scale);
  }

  void addLatentKeys(GgufWriter* out) const {
    const std::string of = architecture + ".attention.";
    // Treats the memory as one head, if heads have separate names.
    const std::string own = joined_latents ? "" : "_mla";
    if (!joined_latents) {
      out->addUint32(of + "key_length", latent_dim + rope_dims);
      out->addUint32(of + "value_length", latent_dim);
    }
    out->addUint32(of + "key_length" + own, head_dim);
    if (value_dim != 0) {
      out->addUint32(of + "value_length" + own, value_dim);
    }
    out->addUint32(of + "kv_lora_rank", latent_dim);
    if (query_latent_dim != 0) {
      out->addUint32(of + "q_lora_rank", query_latent_dim);
    }
  }

  void addExpertKeys(GgufWriter* out) const {
    if (n_experts == 0) {
      return;
    }
    const std::string of = architecture + ".";
    out->addUint32(of + "expert_count", n_experts);
    out->addUint32(of + "expert_used_count", experts_used);
    if (is({"deepseek2"})) {
      out->addUint32(of + "leading_dense_block_count", dense_layers);
      out->addBool(of + "expert_weights_norm", expert_weights_norm);
      out->addFloat32(of + "expert_weights_scale", expert_weights_scale);
      out->addUint32(of + "expert_shared_count", shared_expert_ff / expert_ff);
      if (expert_gating != 0) {
        out->addUint32(of + "expert_gating_func", expert_gating);
      }
    }
    if (is({"lfm2moe", "qwen3moe", "deepseek2"})) {
      out->addUint32(of + "expert_feed_forward_length", expert_ff);
    }
    if (is({"lfm2moe"})) {
      out->addUint32(of + "expert_gating_func", 2);
      out->addUint32(of + "leading_dense_block_count", dense_layers);
    }
    if (shared_expert_ff != 0 && !is({"deepseek2"})) {
      out->addUint32(of + "expert_shared_feed_forward_length", shared_expert_ff);
    }
  }

  void addGemma4Keys(GgufWriter* out) const {
    if (!is({"gemma4"})) {
      return;
    }
    const std::string of = architecture + ".";
    out->addUint32(of + "embedding_length_per_layer_input", layer_input);
    out->addUint32(of + "attention.shared_kv_layers", shared_layers);
    if (sliding_head_dim != 0) {
      out->addUint32(of + "attention.key_length_swa", sliding_head_dim);
      out->addUint32(of + "attention.value_length_swa", sliding_head_dim);
    }
    out->addBools(of + "attention.sliding_window_pattern",
                  {slides_by_layer.begin(), slides_by_layer.end()});
  }

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
    if (ends_texts) {
      out->addBool("tokenizer.ggml.add_eos_token", true);
    }
    if (pooling_type >= 0) {
      out->addUint32(architecture + ".pooling_type", static_cast<uint32_t>(pooling_type));
    }
  }
};

/// A Gemma with few layers whose window of 8 fills soon.
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

// A small, complete llama-architecture file, which tests of refusals damage. Tests only.

struct TinyLlama {
  uint32_t n_layers = 2;
  uint32_t n_embd = 32;
  uint32_t n_heads = 4;
  uint32_t n_kv_heads = 2;
  uint32_t n_ff = 64;
  uint32_t n_vocab = 16;
  bool tied_output = true;

  uint32_t headDim() const { return n_embd / n_heads; }

  /// All tensors F32 and zero. No tokenizer.
  GgufWriter writer() const {
    GgufWriter out;
    out.addString("general.architecture", "llama");
    out.addUint32("llama.block_count", n_layers);
    out.addUint32("llama.embedding_length", n_embd);
    out.addUint32("llama.feed_forward_length", n_ff);
    out.addUint32("llama.attention.head_count", n_heads);
    out.addUint32("llama.attention.head_count_kv", n_kv_heads);
    out.addUint32("llama.context_length", 128);
    out.addFloat32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    addMatrix(&out, "token_embd.weight", n_vocab, n_embd);
    addVector(&out, "output_norm.weight");
    if (!tied_output) {
      addMatrix(&out, "output.weight", n_vocab, n_embd);
    }
    for (uint32_t layer = 0; layer < n_layers; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      addVector(&out, prefix + "attn_norm.weight");
      addMatrix(&out, prefix + "attn_q.weight", n_heads * headDim(), n_embd);
      addMatrix(&out, prefix + "attn_k.weight", n_kv_heads * headDim(), n_embd);
      addMatrix(&out, prefix + "attn_v.weight", n_kv_heads * headDim(), n_embd);
      addMatrix(&out, prefix + "attn_output.weight", n_embd, n_heads * headDim());
      addVector(&out, prefix + "ffn_norm.weight");
      addMatrix(&out, prefix + "ffn_gate.weight", n_ff, n_embd);
      addMatrix(&out, prefix + "ffn_up.weight", n_ff, n_embd);
      addMatrix(&out, prefix + "ffn_down.weight", n_embd, n_ff);
    }
    return out;
  }

  static void addMatrix(GgufWriter* out, const std::string& name, uint64_t rows, uint64_t cols) {
    out->addTensor(name, 0, {cols, rows},
                   std::vector<uint8_t>(static_cast<size_t>(rows * cols * 4)));
  }
  void addVector(GgufWriter* out, const std::string& name) const {
    out->addTensor(name, 0, {n_embd}, std::vector<uint8_t>(n_embd * 4));
  }
};

}  // namespace oriel_internal::test
