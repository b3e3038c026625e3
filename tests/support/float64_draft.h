// Drafts of a Gemma 4 assistant in float64, from the definition of its layers: queries only, over the target's keys and
// values. Shares only the target's float64 pass and the GGUF reader. Tests only.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/float64_model.h"

namespace oriel_internal::test {

class Float64Draft {
 public:
  explicit Float64Draft(const std::string& path) : weights_(path) {
    n_layers_ = weights_.number("block_count");
    n_heads_ = weights_.number("attention.head_count");
    eps_ = weights_.real("attention.layer_norm_rms_epsilon", 0);
    const std::vector<bool> slides = weights_.flags("attention.sliding_window_pattern");
    for (size_t layer = 0; layer < n_layers_; ++layer) {
      slides_.push_back(slides[layer]);
      heads_.push_back(
          weights_.number(slides[layer] ? "attention.key_length_swa" : "attention.key_length"));
      ropes_.emplace_back(&weights_, layer, n_layers_, heads_[layer], slides[layer]);
    }
  }

  /// Logits of consecutive drafts. The first is computed from `id`, which follows the target's tokens, and the vector
  /// after the target's last norm; each next one from the previous draft and its vector. All have the position of `id`,
  /// which has no key of its own.
  std::vector<std::vector<double>> guesses(Float64Model* target, int32_t id, size_t count,
                                           size_t sinks, size_t window) {
    std::vector<std::vector<double>> all;
    Vector hidden = target->lastNorm();
    while (all.size() < count) {
      Vector in = target->embedded(id);
      in.insert(in.end(), hidden.begin(), hidden.end());
      Vector x = product("nextn.pre_projection.weight", in);
      for (size_t layer = 0; layer < n_layers_; ++layer) {
        const std::string prefix = "blk." + std::to_string(layer) + ".";
        const Vector mixed =
            attention(target, layer, prefix, norm(x, prefix + "attn_norm.weight"), sinks, window);
        x = sum(x, norm(mixed, prefix + "post_attention_norm.weight"));
        const Vector fed = feedForward(prefix, norm(x, prefix + "ffn_norm.weight"));
        x = sum(x, norm(fed, prefix + "post_ffw_norm.weight"));
        for (double& value : x) {
          value *= weights_[prefix + "layer_output_scale.weight"][0];
        }
      }
      const Vector last = norm(x, "output_norm.weight");
      hidden = product("nextn.post_projection.weight", last);
      all.push_back(product("token_embd.weight", last));
      id = static_cast<int32_t>(std::max_element(all.back().begin(), all.back().end()) -
                                all.back().begin());
    }
    return all;
  }

 private:
  using Vector = std::vector<double>;

  Vector attention(Float64Model* target, size_t layer, const std::string& prefix, const Vector& u,
                   size_t sinks, size_t window) {
    const size_t dim = heads_[layer];
    const Float64Model::Kept kept = target->keptForNext(slides_[layer], sinks, window);
    const size_t n = kept.keys.size();
    Vector query = product(prefix + "attn_q.weight", u);
    Vector out(n_heads_ * dim);
    for (size_t h = 0; h < n_heads_; ++h) {
      const size_t kv = h / (n_heads_ / kept.n_heads);
      const Vector head = ropes_[layer].rotated(
          norm(part(query, h * dim, dim), prefix + "attn_q_norm.weight"), kept.first + n);
      Vector scores(n);
      for (size_t j = 0; j < n; ++j) {
        const Vector key = target->rotatedKey(kept, j, kv);
        for (size_t c = 0; c < dim; ++c) {
          scores[j] += head[c] * key[c];
        }
      }
      const double most = *std::max_element(scores.begin(), scores.end());
      double all = 0;
      for (double& score : scores) {
        score = std::exp(score - most);
        all += score;
      }
      for (size_t j = 0; j < n; ++j) {
        for (size_t c = 0; c < dim; ++c) {
          out[h * dim + c] += scores[j] / all * kept.values[j][kv * dim + c];
        }
      }
    }
    return product(prefix + "attn_output.weight", out);
  }

  Vector feedForward(const std::string& prefix, const Vector& z) {
    Vector gate = product(prefix + "ffn_gate.weight", z);
    const Vector up = product(prefix + "ffn_up.weight", z);
    for (size_t i = 0; i < gate.size(); ++i) {
      const double x = gate[i];
      gate[i] = 0.5 * x *
                (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))) *
                up[i];
    }
    return product(prefix + "ffn_down.weight", gate);
  }

  static Vector sum(Vector x, const Vector& y) {
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] += y[i];
    }
    return x;
  }
  Vector product(const std::string& name, const Vector& x) { return weights_.product(name, x); }
  Vector norm(Vector x, const std::string& name) {
    double squares = 0;
    for (const double value : x) {
      squares += value * value;
    }
    const double by = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps_);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] *= by * weights_[name][i];
    }
    return x;
  }

  Float64Weights weights_;
  size_t n_layers_ = 0, n_heads_ = 0;
  double eps_ = 0;
  std::vector<bool> slides_;
  std::vector<size_t> heads_;
  std::vector<Float64Rope> ropes_;
};

}  // namespace oriel_internal::test
