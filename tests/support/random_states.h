// Recurrent states of random models: keys and tensors of their files. Tests only.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "support/gguf_writer.h"

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
  uint32_t extra_layers = 0;  ///< after the others, not run
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

}  // namespace oriel_internal::test
