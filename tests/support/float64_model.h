// A llama forward pass in float64, written from the definitions: one token at a time, keys kept before
// RoPE, positions assigned inside the cache at every step (StreamingLLM to the letter). Shares the GGUF
// reader with the library and nothing else. Tests only.
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
    n_layers_ = number("llama.block_count");
    n_heads_ = number("llama.attention.head_count");
    n_kv_heads_ = number("llama.attention.head_count_kv");
    n_embd_ = number("llama.embedding_length");
    uint64_t head_dim = 0;
    head_dim_ = file_.getUint("llama.attention.key_length", &head_dim) ? head_dim : n_embd_ / n_heads_;
    double value = 0;
    eps_ = file_.getFloat("llama.attention.layer_norm_rms_epsilon", &value) ? value : 1e-5;
    theta_ = file_.getFloat("llama.rope.freq_base", &value) ? value : 10000.0;
    keys_.resize(n_layers_);
    values_.resize(n_layers_);
  }

  size_t nVocab() { return weights("token_embd.weight").size() / n_embd_; }

  /// Logits after one more token, seeing the first `sinks` and the last `window` tokens.
  std::vector<double> step(int32_t id, size_t sinks, size_t window) {
    const std::vector<double>& embedding = weights("token_embd.weight");
    std::vector<double> x(embedding.begin() + id * static_cast<std::ptrdiff_t>(n_embd_),
                          embedding.begin() + (id + 1) * static_cast<std::ptrdiff_t>(n_embd_));
    for (size_t layer = 0; layer < n_layers_; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      const std::vector<double> y = norm(x, prefix + "attn_norm.weight");
      keys_[layer].push_back(product(prefix + "attn_k.weight", y));
      values_[layer].push_back(product(prefix + "attn_v.weight", y));
      if (keys_[layer].size() > sinks + window) {
        keys_[layer].erase(keys_[layer].begin() + static_cast<std::ptrdiff_t>(sinks));
        values_[layer].erase(values_[layer].begin() + static_cast<std::ptrdiff_t>(sinks));
      }
      add(&x, product(prefix + "attn_output.weight",
                      attend(layer, product(prefix + "attn_q.weight", y))));
      const std::vector<double> z = norm(x, prefix + "ffn_norm.weight");
      std::vector<double> gate = product(prefix + "ffn_gate.weight", z);
      const std::vector<double> up = product(prefix + "ffn_up.weight", z);
      for (size_t i = 0; i < gate.size(); ++i) {
        gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      }
      add(&x, product(prefix + "ffn_down.weight", gate));
    }
    GgufTensor output;
    const bool untied = file_.findTensor("output.weight", &output);
    return product(untied ? "output.weight" : "token_embd.weight", norm(x, "output_norm.weight"));
  }

 private:
  size_t number(const char* key) const {
    uint64_t value = 0;
    if (!file_.getUint(key, &value)) {
      throw std::runtime_error(key);
    }
    return value;
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
      std::memcpy(&value, tensor.data + offset, 2);
      return value;
    };
    for (size_t i = 0; i < count; ++i) {
      switch (tensor.type) {
        case 0: {
          float value;
          std::memcpy(&value, tensor.data + 4 * i, 4);
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
                      static_cast<int8_t>(tensor.data[i / 32 * 34 + 2 + i % 32]);
          break;
        case 2: {
          const uint8_t byte = tensor.data[i / 32 * 18 + 2 + i % 16];
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

  // Head `head` of a vector, rotated to a position (pairs 2i, 2i + 1).
  std::vector<double> rotated(const std::vector<double>& vector, size_t head, size_t position) const {
    std::vector<double> out(head_dim_);
    for (size_t i = 0; i < head_dim_ / 2; ++i) {
      const double angle = static_cast<double>(position) *
                           std::pow(theta_, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim_));
      const double a = vector[head * head_dim_ + 2 * i];
      const double b = vector[head * head_dim_ + 2 * i + 1];
      out[2 * i] = a * std::cos(angle) - b * std::sin(angle);
      out[2 * i + 1] = a * std::sin(angle) + b * std::cos(angle);
    }
    return out;
  }

  std::vector<double> attend(size_t layer, const std::vector<double>& query) const {
    const size_t n = keys_[layer].size();
    std::vector<double> out(n_heads_ * head_dim_);
    for (size_t h = 0; h < n_heads_; ++h) {
      const size_t kv = h / (n_heads_ / n_kv_heads_);
      const std::vector<double> q = rotated(query, h, n - 1);
      std::vector<double> scores(n);
      double most = -1e300;
      for (size_t j = 0; j < n; ++j) {
        const std::vector<double> k = rotated(keys_[layer][j], kv, j);
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
  size_t n_layers_ = 0, n_heads_ = 0, n_kv_heads_ = 0, n_embd_ = 0, head_dim_ = 0;
  double eps_ = 0, theta_ = 0;
  std::map<std::string, std::vector<double>> weights_;
  std::vector<std::vector<std::vector<double>>> keys_, values_;
};

}  // namespace oriel::test
