// Recurrent states in float64, from the papers' recurrences, one token at a time: the gated delta rule (Yang, Kautz and
// Hatamizadeh, 2024) and Mamba-2 (Dao and Gu, 2024), for files of Qwen3.5, Granite 4, Falcon-H1 and Mamba-2. Tests
// only.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include "support/float64_weights.h"

namespace oriel_internal::test {

class Float64States {
 public:
  using Vector = std::vector<double>;

  Float64States(Float64Weights* weights, size_t n_layers) : weights_(*weights), layers_(n_layers) {
    if (weights_.number("ssm.state_size", 0) == 0) {
      return;
    }
    taps_ = weights_.number("ssm.conv_kernel");
    key_dim_ = weights_.number("ssm.state_size");
    key_heads_ = weights_.number("ssm.group_count");
    heads_ = weights_.number("ssm.time_step_rank");
    value_dim_ = weights_.number("ssm.inner_size") / heads_;
    eps_ = weights_.real("attention.layer_norm_rms_epsilon", 1e-5);
  }

  bool in(const std::string& prefix) const { return weights_.has(prefix + "ssm_conv1d.weight"); }

  /// A layer's state output for a token.
  Vector step(size_t layer, const std::string& prefix, const Vector& u) {
    const bool delta = weights_.has(prefix + "attn_gate.weight");
    return times(prefix + "ssm_out.weight",
                 delta ? deltaRule(layer, prefix, u) : mamba2(layer, prefix, u));
  }

  /// The matrix of a head: the delta rule's [key][value], Mamba-2's [value][key].
  const std::vector<Vector>& matrix(size_t layer, size_t head) const {
    return layers_[layer].matrices[head];
  }
  /// The last inputs of the convolution, oldest first.
  const std::deque<Vector>& columns(size_t layer) const { return layers_[layer].columns; }

 private:
  struct Layer {
    std::vector<std::vector<Vector>> matrices;
    std::deque<Vector> columns;
  };

  Vector deltaRule(size_t layer, const std::string& prefix, const Vector& u) {
    const size_t keys = key_heads_ * key_dim_;
    const Vector mixed = convolved(layer, prefix, times(prefix + "attn_qkv.weight", u));
    const Vector z = times(prefix + "attn_gate.weight", u);
    const Vector beta = times(prefix + "ssm_beta.weight", u);
    const Vector alpha = times(prefix + "ssm_alpha.weight", u);
    const Vector& dt = weights_[prefix + "ssm_dt.bias"];
    const Vector& a = weights_[prefix + "ssm_a"];
    const Vector& norm = weights_[prefix + "ssm_norm.weight"];
    std::vector<std::vector<Vector>>& states = layers_[layer].matrices;
    states.resize(heads_, std::vector<Vector>(key_dim_, Vector(value_dim_)));
    Vector out;
    for (size_t h = 0; h < heads_; ++h) {
      const size_t shared = h % key_heads_;
      const Vector q = unit(part(mixed, shared * key_dim_, key_dim_));
      const Vector k = unit(part(mixed, keys + shared * key_dim_, key_dim_));
      const Vector v = part(mixed, 2 * keys + h * value_dim_, value_dim_);
      const double decay = std::exp(softplus(alpha[h] + dt[h]) * a[h]);
      const double strength = 1 / (1 + std::exp(-beta[h]));
      std::vector<Vector>& s = states[h];
      Vector known(value_dim_), o(value_dim_);
      for (size_t i = 0; i < key_dim_; ++i) {
        double* const row = s[i].data();
        for (size_t j = 0; j < value_dim_; ++j) {
          row[j] *= decay;
          known[j] += row[j] * k[i];
        }
      }
      const double root = std::sqrt(static_cast<double>(key_dim_));
      for (size_t i = 0; i < key_dim_; ++i) {
        double* const row = s[i].data();
        for (size_t j = 0; j < value_dim_; ++j) {
          row[j] += k[i] * strength * (v[j] - known[j]);
          o[j] += row[j] * q[i] / root;
        }
      }
      o = normed(o, norm);
      for (size_t j = 0; j < value_dim_; ++j) {
        out.push_back(o[j] * silu(z[h * value_dim_ + j]));
      }
    }
    return out;
  }

  Vector mamba2(size_t layer, const std::string& prefix, const Vector& u) {
    const size_t inner = heads_ * value_dim_, keys = key_heads_ * key_dim_;
    const Vector all = times(prefix + "ssm_in.weight", u);
    const Vector z = part(all, 0, inner);
    const Vector xbc = convolved(layer, prefix, part(all, inner, inner + 2 * keys));
    const Vector steps = part(all, 2 * inner + 2 * keys, heads_);
    const Vector& dt_bias = weights_[prefix + "ssm_dt.bias"];
    const Vector& a = weights_[prefix + "ssm_a"];
    const Vector& d = weights_[prefix + "ssm_d"];
    std::vector<std::vector<Vector>>& states = layers_[layer].matrices;
    states.resize(heads_, std::vector<Vector>(value_dim_, Vector(key_dim_)));
    Vector out(inner);
    for (size_t h = 0; h < heads_; ++h) {
      const size_t group = h / (heads_ / key_heads_);
      const double dt = softplus(steps[h] + dt_bias[h]);
      const double decay = std::exp(dt * a[h]);
      for (size_t p = 0; p < value_dim_; ++p) {
        const size_t at = h * value_dim_ + p;
        const double x = xbc[at];
        double* const state = states[h][p].data();
        double y = d[h] * x;
        for (size_t n = 0; n < key_dim_; ++n) {
          double& s = state[n];
          s = s * decay + xbc[inner + group * key_dim_ + n] * x * dt;
          y += s * xbc[inner + keys + group * key_dim_ + n];
        }
        out[at] = y * silu(z[at]);
      }
    }
    if (!weights_.has(prefix + "ssm_norm.weight")) {
      return out;
    }
    const size_t width = inner / key_heads_;
    Vector result;
    for (size_t group = 0; group < key_heads_; ++group) {
      const Vector one = normed(part(out, group * width, width),
                                part(weights_[prefix + "ssm_norm.weight"], group * width, width));
      result.insert(result.end(), one.begin(), one.end());
    }
    return result;
  }

  // silu of a causal convolution of each channel; the first tap is the oldest column's.
  Vector convolved(size_t layer, const std::string& prefix, const Vector& column) {
    std::deque<Vector>& columns = layers_[layer].columns;
    columns.resize(taps_ - 1, Vector(column.size()));
    columns.push_back(column);
    const Vector& taps = weights_[prefix + "ssm_conv1d.weight"];
    Vector out(column.size());
    if (weights_.has(prefix + "ssm_conv1d.bias")) {
      out = weights_[prefix + "ssm_conv1d.bias"];
    }
    for (size_t c = 0; c < column.size(); ++c) {
      for (size_t j = 0; j < taps_; ++j) {
        out[c] += taps[c * taps_ + j] * columns[j][c];
      }
      out[c] = silu(out[c]);
    }
    columns.pop_front();
    return out;
  }

  Vector times(const std::string& name, const Vector& x) { return weights_.product(name, x); }
  static double silu(double x) { return x / (1 + std::exp(-x)); }
  static double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
  static double squares(const Vector& x) {
    double sum = 0;
    for (const double v : x) {
      sum += v * v;
    }
    return sum;
  }
  Vector unit(Vector x) const {
    const double length = std::max(std::sqrt(squares(x)), eps_);
    for (double& v : x) {
      v /= length;
    }
    return x;
  }
  Vector normed(Vector x, const Vector& weight) const {
    const double rms = std::sqrt(squares(x) / static_cast<double>(x.size()) + eps_);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] *= weight[i] / rms;
    }
    return x;
  }

  Float64Weights& weights_;
  std::vector<Layer> layers_;
  size_t taps_ = 0, key_dim_ = 0, key_heads_ = 0, heads_ = 0, value_dim_ = 0;
  double eps_ = 0;
};

}  // namespace oriel_internal::test
