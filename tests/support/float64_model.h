// Forward passes in float64, written from the definitions: one token at a time, keys kept before RoPE,
// positions assigned inside the cache at every step (StreamingLLM to the letter); local layers see the
// last tokens at their own positions. Shares the GGUF reader with the library and nothing else: what an
// architecture does is said here a second time. Tests only.
#pragma once

#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/log.h"
#include "gguf/gguf.h"
#include "support/files.h"

namespace oriel::test {

class Float64Model {
 public:
  explicit Float64Model(const std::string& path) : bytes_(readBytes(path)) {
    if (!file_.open(bytes_.data(), bytes_.size(), Log()).ok()) {
      throw std::runtime_error("cannot read " + path);
    }
    GgufString name;
    if (!file_.getString("general.architecture", &name)) {
      throw std::runtime_error("no architecture in " + path);
    }
    architecture_.assign(name.data, name.bytes);
    n_layers_ = number("block_count");
    n_heads_ = number("attention.head_count");
    n_kv_heads_ = number("attention.head_count_kv");
    n_embd_ = number("embedding_length");
    n_ff_ = number("feed_forward_length");
    uint64_t count = 0;
    head_dim_ =
        file_.getUint(key("attention.key_length").c_str(), &count) ? count : n_embd_ / n_heads_;
    eps_ = real("attention.layer_norm_rms_epsilon", 1e-5);
    theta_ = real("rope.freq_base", 10000.0);
    position_divisor_ = real("rope.scaling.factor", 1.0);
    if (architecture_ == "gemma3") {
      local_window_ = number("attention.sliding_window");
      local_period_ =
          file_.getUint(key("attention.sliding_window_pattern").c_str(), &count) ? count : 6;
    }
    keys_.resize(n_layers_);
    values_.resize(n_layers_);
  }

  size_t nVocab() { return weights("token_embd.weight").size() / n_embd_; }

  /// Logits after one more token, seeing the first `sinks` and the last `window` tokens.
  std::vector<double> step(int32_t id, size_t sinks, size_t window) {
    const std::vector<double>& embedding = weights("token_embd.weight");
    std::vector<double> x(embedding.begin() + id * static_cast<std::ptrdiff_t>(n_embd_),
                          embedding.begin() + (id + 1) * static_cast<std::ptrdiff_t>(n_embd_));
    for (double& value : x) {
      value *= architecture_ == "gemma3" ? std::sqrt(static_cast<double>(n_embd_)) : 1.0;
    }
    for (size_t layer = 0; layer < n_layers_; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      const std::vector<double> y = norm(x, prefix + "attn_norm.weight");
      std::vector<double> query = projection(prefix, "attn_q", y, 0, n_heads_ * head_dim_);
      std::vector<double> k =
          projection(prefix, "attn_k", y, n_heads_ * head_dim_, n_kv_heads_ * head_dim_);
      std::vector<double> v = projection(prefix, "attn_v", y, (n_heads_ + n_kv_heads_) * head_dim_,
                                         n_kv_heads_ * head_dim_);
      normHeads(&query, prefix + "attn_q_norm.weight");
      normHeads(&k, prefix + "attn_k_norm.weight");
      keys_[layer].push_back(k);
      values_[layer].push_back(v);
      const bool local = isLocal(layer);
      const size_t kept_sinks = local ? 0 : sinks;
      const size_t kept = local ? std::min(local_window_, sinks + window) : sinks + window;
      if (keys_[layer].size() > kept) {
        keys_[layer].erase(keys_[layer].begin() + static_cast<std::ptrdiff_t>(kept_sinks));
        values_[layer].erase(values_[layer].begin() + static_cast<std::ptrdiff_t>(kept_sinks));
      }
      // Where the oldest of what is kept stands; inside the cache, but for local layers.
      const size_t first = local ? n_tokens_ + 1 - keys_[layer].size() : 0;
      add(&x, postNorm(product(prefix + "attn_output.weight", attend(layer, query, first)),
                       prefix + "post_attention_norm.weight"));
      const std::vector<double> z = norm(x, prefix + "ffn_norm.weight");
      std::vector<double> gate;
      std::vector<double> up = product(prefix + "ffn_up.weight", z);
      if (up.size() == 2 * n_ff_) {  // phi3: gate, then up
        gate.assign(up.begin(), up.begin() + static_cast<std::ptrdiff_t>(n_ff_));
        up.erase(up.begin(), up.begin() + static_cast<std::ptrdiff_t>(n_ff_));
      } else {
        gate = product(prefix + "ffn_gate.weight", z);
      }
      for (size_t i = 0; i < gate.size(); ++i) {
        gate[i] = activation(gate[i]) * up[i];
      }
      add(&x, postNorm(product(prefix + "ffn_down.weight", gate), prefix + "post_ffw_norm.weight"));
    }
    ++n_tokens_;
    GgufTensor output;
    const bool untied = file_.findTensor("output.weight", &output);
    return product(untied ? "output.weight" : "token_embd.weight", norm(x, "output_norm.weight"));
  }

 private:
  std::string key(const std::string& suffix) const { return architecture_ + "." + suffix; }
  size_t number(const std::string& suffix) const {
    uint64_t value = 0;
    if (!file_.getUint(key(suffix).c_str(), &value)) {
      throw std::runtime_error(key(suffix));
    }
    return value;
  }
  double real(const std::string& suffix, double otherwise) const {
    double value = 0;
    return file_.getFloat(key(suffix).c_str(), &value) ? value : otherwise;
  }
  bool has(const std::string& name) const {
    GgufTensor tensor;
    return file_.findTensor(name.c_str(), &tensor);
  }
  bool isLocal(size_t layer) const {
    return local_window_ != 0 && layer % local_period_ != local_period_ - 1;
  }

  double activation(double x) const {
    if (architecture_ != "gemma3") {
      return x / (1 + std::exp(-x));
    }
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
  }

  // Rows [first, first + rows) of the fused matrix where there is one.
  std::vector<double> projection(const std::string& prefix, const std::string& name,
                                 const std::vector<double>& y, size_t first, size_t rows) {
    std::vector<double> out;
    if (has(prefix + "attn_qkv.weight")) {
      const std::vector<double> all = product(prefix + "attn_qkv.weight", y);
      out.assign(all.begin() + static_cast<std::ptrdiff_t>(first),
                 all.begin() + static_cast<std::ptrdiff_t>(first + rows));
    } else {
      out = product(prefix + name + ".weight", y);
    }
    if (has(prefix + name + ".bias")) {
      add(&out, weights(prefix + name + ".bias"));
    }
    return out;
  }

  void normHeads(std::vector<double>* vector, const std::string& name) {
    for (size_t at = 0; has(name) && at < vector->size(); at += head_dim_) {
      const auto head = vector->begin() + static_cast<std::ptrdiff_t>(at);
      const std::vector<double> normed =
          norm(std::vector<double>(head, head + static_cast<std::ptrdiff_t>(head_dim_)), name);
      std::copy(normed.begin(), normed.end(), head);
    }
  }

  std::vector<double> postNorm(const std::vector<double>& x, const std::string& name) {
    return has(name) ? norm(x, name) : x;
  }

  static double halfValue(uint16_t bits) {
    const int exponent = (bits >> 10) & 31;
    const int mantissa = bits & 1023;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    return exponent == 0 ? sign * std::ldexp(mantissa, -24)
                         : sign * std::ldexp(1024 + mantissa, exponent - 25);
  }

  const std::vector<double>& weights(const std::string& name) {
    auto found = weights_.find(name);
    if (found != weights_.end()) {
      return found->second;
    }
    GgufTensor tensor;
    if (!file_.findTensor(name.c_str(), &tensor)) {
      throw std::runtime_error(name);
    }
    size_t count = 1;
    for (uint32_t d = 0; d < tensor.n_dims; ++d) {
      count *= tensor.dims[d];
    }
    std::vector<double> values(count);
    const auto u16 = [&](size_t offset) {
      uint16_t value;
      std::memcpy(&value, bytes_.data() + tensor.offset + offset, 2);
      return value;
    };
    for (size_t i = 0; i < count; ++i) {
      switch (tensor.type) {
        case 0: {
          float value;
          std::memcpy(&value, bytes_.data() + tensor.offset + 4 * i, 4);
          values[i] = value;
          break;
        }
        case 1:
          values[i] = halfValue(u16(2 * i));
          break;
        case 30: {
          const uint32_t bits = static_cast<uint32_t>(u16(2 * i)) << 16;
          float value;
          std::memcpy(&value, &bits, 4);
          values[i] = value;
          break;
        }
        case 8:
          values[i] = halfValue(u16(i / 32 * 34)) *
                      static_cast<int8_t>(bytes_[tensor.offset + i / 32 * 34 + 2 + i % 32]);
          break;
        case 2: {
          const uint8_t byte = bytes_[tensor.offset + i / 32 * 18 + 2 + i % 16];
          const int nibble = i % 32 < 16 ? byte & 15 : byte >> 4;
          values[i] = halfValue(u16(i / 32 * 18)) * (nibble - 8);
          break;
        }
        default:
          throw std::runtime_error("tensor type");
      }
    }
    return weights_[name] = values;
  }

  std::vector<double> product(const std::string& name, const std::vector<double>& x) {
    const std::vector<double>& w = weights(name);
    std::vector<double> y(w.size() / x.size());
    for (size_t r = 0; r < y.size(); ++r) {
      for (size_t c = 0; c < x.size(); ++c) {
        y[r] += w[r * x.size() + c] * x[c];
      }
    }
    return y;
  }

  std::vector<double> norm(const std::vector<double>& x, const std::string& name) {
    const std::vector<double>& w = weights(name);
    double sum = 0;
    for (const double v : x) {
      sum += v * v;
    }
    std::vector<double> y(x);
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] *= w[i] / std::sqrt(sum / static_cast<double>(x.size()) + eps_);
    }
    return y;
  }

  static void add(std::vector<double>* x, const std::vector<double>& y) {
    for (size_t i = 0; i < x->size(); ++i) {
      (*x)[i] += y[i];
    }
  }

  // Head `head` of a vector, rotated to a position.
  std::vector<double> rotated(const std::vector<double>& vector, size_t head, size_t layer,
                              size_t position) {
    std::vector<double> out(vector.begin() + static_cast<std::ptrdiff_t>(head * head_dim_),
                            vector.begin() + static_cast<std::ptrdiff_t>((head + 1) * head_dim_));
    if (architecture_ == "smollm3" && layer % 4 == 3) {
      return out;
    }
    const bool neighbours = architecture_ == "llama" || architecture_ == "smollm3";
    const size_t half = head_dim_ / 2;
    for (size_t i = 0; i < half; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(head_dim_);
      double frequency = std::pow(theta_, exponent) / position_divisor_;
      if (isLocal(layer)) {
        frequency = std::pow(10000.0, exponent);
      } else if (has("rope_freqs.weight")) {
        frequency /= weights("rope_freqs.weight")[i];
      }
      const double angle = static_cast<double>(position) * frequency;
      const size_t first = neighbours ? 2 * i : i;
      const size_t second = neighbours ? 2 * i + 1 : i + half;
      const double a = vector[head * head_dim_ + first];
      const double b = vector[head * head_dim_ + second];
      out[first] = a * std::cos(angle) - b * std::sin(angle);
      out[second] = a * std::sin(angle) + b * std::cos(angle);
    }
    return out;
  }

  // The oldest key stands at position `first`.
  std::vector<double> attend(size_t layer, const std::vector<double>& query, size_t first) {
    const size_t n = keys_[layer].size();
    std::vector<double> out(n_heads_ * head_dim_);
    for (size_t h = 0; h < n_heads_; ++h) {
      const size_t kv = h / (n_heads_ / n_kv_heads_);
      const std::vector<double> q = rotated(query, h, layer, first + n - 1);
      std::vector<double> scores(n);
      double most = -1e300;
      for (size_t j = 0; j < n; ++j) {
        const std::vector<double> k = rotated(keys_[layer][j], kv, layer, first + j);
        for (size_t c = 0; c < head_dim_; ++c) {
          scores[j] += q[c] * k[c];
        }
        scores[j] /= std::sqrt(static_cast<double>(head_dim_));
        most = std::max(most, scores[j]);
      }
      double sum = 0;
      for (size_t j = 0; j < n; ++j) {
        scores[j] = std::exp(scores[j] - most);
        sum += scores[j];
      }
      for (size_t j = 0; j < n; ++j) {
        for (size_t c = 0; c < head_dim_; ++c) {
          out[h * head_dim_ + c] += scores[j] / sum * values_[layer][j][kv * head_dim_ + c];
        }
      }
    }
    return out;
  }

  std::vector<uint8_t> bytes_;
  GgufFile file_;
  std::string architecture_;
  size_t n_layers_ = 0, n_heads_ = 0, n_kv_heads_ = 0, n_embd_ = 0, n_ff_ = 0, head_dim_ = 0;
  size_t local_window_ = 0, local_period_ = 0;
  size_t n_tokens_ = 0;
  double eps_ = 0, theta_ = 0, position_divisor_ = 1;
  std::map<std::string, std::vector<double>> weights_;
  std::vector<std::vector<std::vector<double>>> keys_, values_;
};

}  // namespace oriel::test
