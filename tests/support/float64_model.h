// Forward passes in float64, written from the definitions: one token at a time, keys kept before RoPE,
// positions assigned inside the cache at every step (StreamingLLM to the letter); windowed layers see the
// last tokens at their own positions; short convolutions see the last columns whatever was evicted. Shares
// the GGUF reader with the library and nothing else: what an architecture does is said here a second time.
// Tests only.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include "base/half.h"
#include "support/float64_rope.h"
#include "support/float64_weights.h"

namespace oriel::test {

class Float64Model {
 public:
  /// `rounds_cache`: keys and values are rounded to f16, as a cache keeps them at best. What that does to logits no
  /// implementation with such a cache can undo.
  explicit Float64Model(const std::string& path, bool rounds_cache = false)
      : weights_(path), rounds_(rounds_cache) {
    n_layers_ = weights_.number("block_count");
    n_heads_ = weights_.number("attention.head_count");
    n_embd_ = weights_.number("embedding_length");
    n_kv_heads_ = weights_.numbers("attention.head_count_kv", n_layers_);
    head_dim_ = weights_.number("attention.key_length", n_embd_ / n_heads_);
    eps_ = weights_.real("attention.layer_norm_rms_epsilon", 1e-5);
    windows_ = float64Windows(weights_, n_layers_);
    for (size_t layer = 0; layer < n_layers_; ++layer) {
      ropes_.emplace_back(&weights_, layer, n_layers_, head_dim_, windows_[layer] != 0);
    }
    readMultipliers();
    keys_.resize(n_layers_);
    values_.resize(n_layers_);
    columns_.resize(n_layers_);
  }

  size_t nVocab() { return weights_["token_embd.weight"].size() / n_embd_; }

  /// Logits after one more token, seeing the first `sinks` and the last `window` tokens. The window may differ from
  /// step to step; what is not seen once is not seen again.
  std::vector<double> step(int32_t id, size_t sinks, size_t window) {
    const std::vector<double>& embedding = weights_["token_embd.weight"];
    std::vector<double> x = part(embedding, static_cast<size_t>(id) * n_embd_, n_embd_);
    scale(&x, embedding_scale_);
    for (size_t layer = 0; layer < n_layers_; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      const std::vector<double> u = normUnlessPost(x, prefix + "attn_norm.weight");
      std::vector<double> mixed = n_kv_heads_[layer] == 0
                                      ? convolution(layer, prefix, u)
                                      : attention(layer, prefix, u, sinks, window);
      mixed = normIfThere(mixed, prefix + "post_attention_norm.weight");
      scale(&mixed, residual_scale_);
      add(&x, mixed);
      std::vector<double> fed = feedForward(prefix, normUnlessPost(x, prefix + "ffn_norm.weight"));
      fed = normIfThere(fed, prefix + "post_ffw_norm.weight");
      scale(&fed, residual_scale_);
      add(&x, fed);
    }
    ++n_tokens_;
    const std::string last_norm = is("lfm2") ? "token_embd_norm.weight" : "output_norm.weight";
    const bool untied = weights_.has("output.weight");
    std::vector<double> logits =
        product(untied ? "output.weight" : "token_embd.weight", norm(x, last_norm));
    scale(&logits, logit_factor_);
    for (double& logit : logits) {
      logit = capped(logit, logit_cap_);
    }
    return logits;
  }

 private:
  // A key's or a value's number as it is kept.
  double stored(double value) const {
    return rounds_ ? static_cast<double>(halfToFloat(floatToHalf(static_cast<float>(value))))
                   : value;
  }

  using Vector = std::vector<double>;

  bool is(const char* name) const { return weights_.architecture() == name; }

  void readMultipliers() {
    const auto n = static_cast<double>(n_embd_);
    const auto givenOr = [&](const std::string& key, double otherwise) {
      const double value = weights_.real(key, 0);
      return value != 0 ? value : otherwise;
    };
    score_scale_ = 1 / std::sqrt(static_cast<double>(head_dim_));
    if (is("gemma3") || is("gemma2")) {
      embedding_scale_ = std::sqrt(n);
    }
    if (is("gemma2")) {
      score_cap_ = weights_.real("attn_logit_softcapping", 50);
      logit_cap_ = weights_.real("final_logit_softcapping", 30);
      if (n_layers_ == 46) {  // 27B
        score_scale_ = 1 / std::sqrt(n / static_cast<double>(n_heads_));
      }
    }
    if (is("granite")) {
      embedding_scale_ = givenOr("embedding_scale", 1);
      residual_scale_ = givenOr("residual_scale", 1);
      score_scale_ = givenOr("attention.scale", score_scale_);
      logit_factor_ = 1 / givenOr("logit_scale", 1);
    }
    if (is("minicpm")) {
      embedding_scale_ = weights_.real("embedding_scale", 12);
      residual_scale_ =
          weights_.real("residual_scale", 1.4 / std::sqrt(static_cast<double>(n_layers_)));
      logit_factor_ = 1 / weights_.real("logit_scale", n / 256);
    }
    if (is("mistral3")) {
      temperature_scale_ = weights_.real("attention.temperature_scale", 0);
      temperature_tokens_ = weights_.number("rope.scaling.original_context_length",
                                            weights_.number("context_length"));
    }
  }

  // ---- Mixers ------------------------------------------------------------------------------------

  Vector attention(size_t layer, const std::string& prefix, const Vector& u, size_t sinks,
                   size_t window) {
    const size_t n_kv = n_kv_heads_[layer];
    Vector q = projection(prefix, "attn_q", u, 0, n_heads_);
    Vector k = projection(prefix, "attn_k", u, n_heads_, n_kv);
    const Vector v = projection(prefix, "attn_v", u, n_heads_ + n_kv, n_kv);
    if (is("olmo2")) {  // over the whole row
      q = norm(q, prefix + "attn_q_norm.weight");
      k = norm(k, prefix + "attn_k_norm.weight");
    } else if (!is("hunyuan-dense")) {  // which norms what it has rotated
      q = headsNormed(q, prefix + "attn_q_norm.weight");
      k = headsNormed(k, prefix + "attn_k_norm.weight");
    }
    keys_[layer].push_back(k);
    values_[layer].push_back(v);
    const size_t own = windows_[layer];
    const size_t kept_sinks = own != 0 ? 0 : sinks;
    const size_t kept = own != 0 ? std::min(own, sinks + window) : sinks + window;
    while (keys_[layer].size() > kept) {
      keys_[layer].erase(keys_[layer].begin() + static_cast<std::ptrdiff_t>(kept_sinks));
      values_[layer].erase(values_[layer].begin() + static_cast<std::ptrdiff_t>(kept_sinks));
    }
    // Where the oldest of what is kept stands: inside the cache, or where it was read.
    const size_t first = own != 0 ? n_tokens_ + 1 - keys_[layer].size() : 0;
    return product(prefix + "attn_output.weight", attend(layer, prefix, q, first, kept_sinks));
  }

  // The oldest key stands at position `first`. Where norms come after RoPE, scores are no functions of distances: what
  // the window holds is then scored where it was read, and sinks from where the query stands inside the cache.
  Vector attend(size_t layer, const std::string& prefix, const Vector& query, size_t first,
                size_t sinks) {
    const size_t n = keys_[layer].size();
    const size_t shift = is("hunyuan-dense") ? n_tokens_ + 1 - first - n : 0;
    const size_t n_kv = n_kv_heads_[layer];
    const size_t now = first + n - 1;
    std::vector<std::vector<Vector>> keys(n_kv);
    for (size_t kv = 0; kv < n_kv; ++kv) {
      for (size_t j = 0; j < n; ++j) {
        keys[kv].push_back(placed(layer, keys_[layer][j], kv,
                                  j < sinks ? first + j : first + j + shift,
                                  prefix + "attn_k_norm.weight"));
      }
    }
    Vector out(n_heads_ * head_dim_);
    for (size_t h = 0; h < n_heads_; ++h) {
      const size_t kv = h / (n_heads_ / n_kv);
      Vector q = placed(layer, query, h, now, prefix + "attn_q_norm.weight");
      Vector ring_q = placed(layer, query, h, now + shift, prefix + "attn_q_norm.weight");
      if (temperature_scale_ != 0) {
        const auto contexts = static_cast<double>(now / temperature_tokens_);
        scale(&q, 1 + temperature_scale_ * std::log(contexts + 1));
        scale(&ring_q, 1 + temperature_scale_ * std::log(contexts + 1));
      }
      Vector scores(n);
      for (size_t j = 0; j < n; ++j) {
        for (size_t c = 0; c < head_dim_; ++c) {
          scores[j] += (j < sinks ? q : ring_q)[c] * stored(keys[kv][j][c]);
        }
        scores[j] = capped(scores[j] * score_scale_, score_cap_);
      }
      const double most = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double& score : scores) {
        score = std::exp(score - most);
        sum += score;
      }
      for (size_t j = 0; j < n; ++j) {
        for (size_t c = 0; c < head_dim_; ++c) {
          out[h * head_dim_ + c] += scores[j] / sum * stored(values_[layer][j][kv * head_dim_ + c]);
        }
      }
    }
    return out;
  }

  // One head of a query or key, rotated to its position.
  Vector placed(size_t layer, const Vector& heads, size_t head, size_t position,
                const std::string& norm_name) {
    const Vector rotated =
        ropes_[layer].rotated(part(heads, head * head_dim_, head_dim_), position);
    return is("hunyuan-dense") ? norm(rotated, norm_name) : rotated;
  }

  // out_proj(c * sum over the last columns of taps * (b * x)); the first tap is the oldest column's.
  Vector convolution(size_t layer, const std::string& prefix, const Vector& u) {
    const Vector bcx = product(prefix + "shortconv.in_proj.weight", u);
    const Vector& taps = weights_[prefix + "shortconv.conv.weight"];
    const size_t n_taps = weights_.number("shortconv.l_cache");
    std::deque<Vector>& columns = columns_[layer];
    columns.resize(n_taps - 1, Vector(n_embd_));  // zeros before the first token
    Vector column(n_embd_);
    for (size_t i = 0; i < n_embd_; ++i) {
      column[i] = bcx[i] * bcx[2 * n_embd_ + i];
    }
    columns.push_back(column);
    Vector y(n_embd_);
    for (size_t i = 0; i < n_embd_; ++i) {
      for (size_t j = 0; j < n_taps; ++j) {
        y[i] += taps[i * n_taps + j] * columns[j][i];
      }
      y[i] *= bcx[n_embd_ + i];
    }
    columns.pop_front();
    return product(prefix + "shortconv.out_proj.weight", y);
  }

  Vector feedForward(const std::string& prefix, const Vector& z) {
    Vector gate;
    Vector up = product(prefix + "ffn_up.weight", z);
    if (weights_.has(prefix + "ffn_gate.weight")) {
      gate = product(prefix + "ffn_gate.weight", z);
    } else {  // phi3: gate, then up
      gate = part(up, 0, up.size() / 2);
      up = part(up, up.size() / 2, up.size() / 2);
    }
    for (size_t i = 0; i < gate.size(); ++i) {
      gate[i] = activation(gate[i]) * up[i];
    }
    return product(prefix + "ffn_down.weight", gate);
  }

  // ---- Vectors -----------------------------------------------------------------------------------

  static Vector part(const Vector& x, size_t first, size_t count) {
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(first);
    return Vector(begin, begin + static_cast<std::ptrdiff_t>(count));
  }
  static void add(Vector* x, const Vector& y) {
    for (size_t i = 0; i < x->size(); ++i) {
      (*x)[i] += y[i];
    }
  }
  static void scale(Vector* x, double factor) {
    for (double& value : *x) {
      value *= factor;
    }
  }
  static double capped(double x, double cap) { return cap != 0 ? cap * std::tanh(x / cap) : x; }

  double activation(double x) const {
    if (!is("gemma3") && !is("gemma2")) {
      return x / (1 + std::exp(-x));
    }
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
  }

  Vector product(const std::string& name, const Vector& x) {
    const Vector& w = weights_[name];
    Vector y(w.size() / x.size());
    for (size_t r = 0; r < y.size(); ++r) {
      for (size_t c = 0; c < x.size(); ++c) {
        y[r] += w[r * x.size() + c] * x[c];
      }
    }
    return y;
  }

  // Some heads of attn_q, attn_k or attn_v: where the matrices are fused they begin at head `first`.
  Vector projection(const std::string& prefix, const std::string& name, const Vector& u,
                    size_t first, size_t heads) {
    Vector out =
        weights_.has(prefix + "attn_qkv.weight")
            ? part(product(prefix + "attn_qkv.weight", u), first * head_dim_, heads * head_dim_)
            : product(prefix + name + ".weight", u);
    if (weights_.has(prefix + name + ".bias")) {
      add(&out, weights_[prefix + name + ".bias"]);
    }
    return out;
  }

  Vector norm(const Vector& x, const std::string& name) {
    const Vector& w = weights_[name];
    double sum = 0;
    for (const double v : x) {
      sum += v * v;
    }
    Vector y(x);
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] *= w[i] / std::sqrt(sum / static_cast<double>(x.size()) + eps_);
    }
    return y;
  }
  Vector normIfThere(const Vector& x, const std::string& name) {
    return weights_.has(name) ? norm(x, name) : x;
  }
  Vector normUnlessPost(const Vector& x, const std::string& name) {
    return is("exaone4") || is("olmo2") ? x : norm(x, name);
  }
  Vector headsNormed(const Vector& heads, const std::string& name) {
    Vector out;
    for (size_t at = 0; at < heads.size(); at += head_dim_) {
      const Vector head = normIfThere(part(heads, at, head_dim_), name);
      out.insert(out.end(), head.begin(), head.end());
    }
    return out;
  }

  Float64Weights weights_;
  const bool rounds_;
  size_t n_layers_ = 0, n_heads_ = 0, n_embd_ = 0, head_dim_ = 0;
  std::vector<size_t> n_kv_heads_;  ///< by layer; 0: a short convolution
  std::vector<size_t> windows_;     ///< by layer; 0: what the session keeps
  std::vector<Float64Rope> ropes_;  ///< by layer
  double eps_ = 0;
  double embedding_scale_ = 1, residual_scale_ = 1, score_scale_ = 1, logit_factor_ = 1;
  double score_cap_ = 0, logit_cap_ = 0;  ///< 0: none
  double temperature_scale_ = 0;          ///< of queries beyond the trained context
  size_t temperature_tokens_ = 1;
  size_t n_tokens_ = 0;
  std::vector<std::vector<Vector>> keys_, values_;
  std::vector<std::deque<Vector>> columns_;  ///< of short convolutions, oldest first
};

}  // namespace oriel::test
