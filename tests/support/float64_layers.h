// Layers in float64, from the definitions: rotation, latent attention, experts, states. Tests only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/half.h"
#include "kv/cache_layout.h"
#include "shaders/shared/layout.h"
#include "support/float64_weights.h"

namespace oriel_internal::test {

// Layers with a window of their own, and each layer's rotation. Tests only.

/// Largest number of last tokens seen by each layer; 0: the session's.
inline std::vector<size_t> float64Windows(const Float64Weights& file, size_t n_layers) {
  std::vector<size_t> windows(n_layers);
  const std::string& name = file.architecture();
  const size_t asked = file.number("attention.sliding_window", 0);
  for (size_t layer = 0; layer < n_layers; ++layer) {
    const auto allBut = [&](size_t usual_period) {  // the last of every period
      const size_t period = file.number("attention.sliding_window_pattern", usual_period);
      return layer % period != period - 1;
    };
    if (name == "gemma4") {
      windows[layer] = file.flags("attention.sliding_window_pattern")[layer] ? asked : 0;
    } else if (name == "lfm2") {  // of every attention layer
      windows[layer] = asked;
    } else if (name == "gemma3" && allBut(6)) {
      windows[layer] = file.number("attention.sliding_window");
    } else if (name == "gemma2" && layer % 2 == 0) {
      windows[layer] = asked != 0 ? asked : 4096;
    } else if (name == "exaone4" && n_layers == 64 && allBut(4)) {
      windows[layer] = asked != 0 ? asked : 4096;
    } else if (name == "olmo2" && asked != 0 && allBut(4)) {  // OLMo 3
      windows[layer] = asked;
    }
  }
  return windows;
}

/// The rotation of one layer's heads: angles are position times frequency.
class Float64Rope {
 public:
  Float64Rope(Float64Weights* file, size_t layer, size_t n_layers, size_t head_dim, bool windowed)
      : neighbours_(pairsNeighbours(file->architecture())) {
    const std::string& of = file->architecture();
    const std::string name = of == "gemma4-assistant" ? "gemma4" : of;
    const bool scaled = !windowed || (name != "gemma3" && name != "gemma4");
    double base = scaled ? file->real("rope.freq_base", 10000.0) : 10000.0;
    const double alpha = file->real("rope.scaling.alpha", 0);
    if (name == "hunyuan-dense" && alpha > 0) {
      const auto d = static_cast<double>(head_dim);
      base *= std::pow(alpha, d / (d - 2));
    }
    const double factor = file->real("rope.scaling.factor", 1.0);
    const bool yarn = file->scalingType() == "yarn" &&
                      (name == "mistral3" || name == "deepseek2" || (name == "olmo2" && !windowed));
    turns_ = !(name == "smollm3" && layer % 4 == 3) &&
             !((name == "granite" || name == "granitehybrid") &&
               !file->flag("rope.scaling.finetuned", true)) &&
             !(name == "exaone4" && n_layers == 64 && !windowed);
    const size_t all = file->number("rope.dimension_count", head_dim);
    const size_t sliding = name == "gemma4" ? head_dim : all;
    const size_t dims = windowed ? file->number("rope.dimension_count_swa", sliding) : all;
    for (size_t i = 0; i < dims / 2; ++i) {
      const double plain =
          std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(dims));
      double frequency = plain;
      if (yarn) {
        const double keep = yarnKeeps(*file, static_cast<double>(i), base, dims);
        frequency = plain * keep + plain / factor * (1 - keep);
      } else if (scaled && !(name == "olmo2" && windowed)) {
        frequency = plain / factor;
      }
      if (scaled && file->has("rope_freqs.weight")) {
        frequency /= (*file)["rope_freqs.weight"][i];
      }
      if (file->has("rope_factors_short.weight")) {  // sessions within the trained context
        frequency /= (*file)["rope_factors_short.weight"][i];
      }
      if (name == "qwen35" && !isTextPair(*file, i)) {
        frequency = 0;
      }
      frequencies_.push_back(frequency);
    }
    if (yarn && name != "deepseek2") {  // which scales scores
      const double part =
          name == "mistral3" ? file->real("rope.scaling.yarn_log_multiplier", 0) : 0;
      amplitude_ = (0.1 * std::log(factor) + 1) / (0.1 * part * std::log(factor) + 1);
    }
  }

  std::vector<double> rotated(const std::vector<double>& head, size_t position) const {
    std::vector<double> out(head);
    if (!turns_) {
      return out;
    }
    const double* const turns = turnsAt(position);
    for (size_t i = 0; i < frequencies_.size(); ++i) {
      const double c = turns[2 * i];
      const double s = turns[2 * i + 1];
      const size_t first = neighbours_ ? 2 * i : i;
      const size_t second = neighbours_ ? 2 * i + 1 : i + frequencies_.size();
      out[first] = head[first] * c - head[second] * s;
      out[second] = head[first] * s + head[second] * c;
    }
    return out;
  }

 private:
  // Cosine and sine of each pair.
  const double* turnsAt(size_t position) const {
    std::vector<double>& turns = turns_at_[position];
    if (turns.empty()) {
      for (const double frequency : frequencies_) {
        const double angle = static_cast<double>(position) * frequency;
        turns.push_back(amplitude_ * std::cos(angle));
        turns.push_back(amplitude_ * std::sin(angle));
      }
    }
    return turns.data();
  }

  // Other architectures pair i with the element half a head further.
  static bool pairsNeighbours(const std::string& name) {
    const std::vector<std::string> names = {"llama",      "smollm3",       "granite",
                                            "minicpm",    "ernie4_5",      "mistral3",
                                            "granitemoe", "granitehybrid", "deepseek2"};
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  // Pairs go to three dimensions in turn until each has its number; the rest belong to a fourth, which is constant
  // along text.
  static bool isTextPair(const Float64Weights& file, size_t pair) {
    return pair < 3 * file.numbers("rope.dimension_sections", 4)[pair % 3];
  }

  // Share of a pair's frequency that is kept: 1 for pairs with many turns in the trained context, 0 for those with few
  // (YaRN, section 3.2).
  static double yarnKeeps(const Float64Weights& file, double pair, double base, size_t dims) {
    const bool says = file.architecture() == "mistral3";
    const double fast = says ? file.real("rope.scaling.yarn_beta_fast", 32) : 32;
    const double slow = says ? file.real("rope.scaling.yarn_beta_slow", 1) : 1;
    const auto d = static_cast<double>(dims);
    const auto trained = static_cast<double>(
        file.number("rope.scaling.original_context_length", file.number("context_length")));
    const auto pairThatTurns = [&](double times) {
      return d * std::log(trained / (2 * std::acos(-1.0) * times)) / (2 * std::log(base));
    };
    const double low = std::max(0.0, std::floor(pairThatTurns(fast)));
    const double high = std::min(d - 1, std::ceil(pairThatTurns(slow)));
    return 1 - std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0);
  }

  bool neighbours_;
  bool turns_ = true;
  double amplitude_ = 1;
  std::vector<double> frequencies_;
  mutable std::unordered_map<size_t, std::vector<double>>
      turns_at_;  ///< by position, filled on demand
};

// Latent attention in float64, from the definition (DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1): every head's keys
// and values are computed from each latent, without folding into queries. Tests only.

class Float64Latent {
 public:
  using Vector = std::vector<double>;

  explicit Float64Latent(Float64Weights* weights) : weights_(*weights) {
    if (weights_.number("attention.kv_lora_rank", 0) == 0) {
      return;
    }
    latent_ = weights_.number("attention.kv_lora_rank");
    heads_ = weights_.number("attention.head_count");
    rope_ = weights_.number("rope.dimension_count");
    const bool split = weights_.has("blk.0.attn_k_b.weight");
    const std::string suffix = split ? "_mla" : "";
    const size_t width = weights_.number("embedding_length");
    key_ = weights_.number("attention.key_length" + suffix);
    value_ = weights_.number("attention.value_length" + suffix, width / heads_);
    scale_ = 1 / std::sqrt(static_cast<double>(key_));
    if (weights_.scalingType() == "yarn") {
      const double root = 1 + weights_.real("rope.scaling.yarn_log_multiplier", 0) *
                                  std::log(weights_.real("rope.scaling.factor", 1));
      scale_ *= root * root;
    }
  }

  bool there() const { return latent_ != 0; }

  /// The visible memory of a token's heads, [head][value], with its own vector last. Positions are those in the cache:
  /// the oldest is 0. `rounds`: memory is rounded to f16.
  Vector attend(const std::string& prefix, const Vector& query_heads,
                const std::vector<Vector>& kept, const Float64Rope& rope, bool rounds) {
    const size_t n = kept.size();
    const size_t plain = key_ - rope_;
    std::vector<Vector> seen;
    for (size_t j = 0; j < n; ++j) {
      Vector vector = kept[j];
      turnLast(&vector, rope, j);
      for (double& value : vector) {
        value = rounds ? static_cast<double>(halfToFloat(floatToHalf(static_cast<float>(value))))
                       : value;
      }
      seen.push_back(vector);
    }
    const Matrix to_key = keys(prefix);
    const Matrix to_value = values(prefix);
    Vector out(heads_ * value_);
    for (size_t h = 0; h < heads_; ++h) {
      Vector query(query_heads.begin() + static_cast<std::ptrdiff_t>(h * key_),
                   query_heads.begin() + static_cast<std::ptrdiff_t>((h + 1) * key_));
      turnLast(&query, rope, n - 1);
      Vector scores(n);
      const Vector head_keys = to_key.of(h, plain, latent_);
      for (size_t j = 0; j < n; ++j) {
        const Vector key = rowsTimes(head_keys.data(), plain, seen[j].data(), latent_);
        for (size_t i = 0; i < plain; ++i) {
          scores[j] += query[i] * key[i];
        }
        for (size_t i = 0; i < rope_; ++i) {
          scores[j] += query[plain + i] * seen[j][latent_ + i];
        }
        scores[j] *= scale_;
      }
      const double most = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double& score : scores) {
        score = std::exp(score - most);
        sum += score;
      }
      const Vector head_values = to_value.of(h, value_, latent_);
      for (size_t j = 0; j < n; ++j) {
        const Vector value = rowsTimes(head_values.data(), value_, seen[j].data(), latent_);
        for (size_t r = 0; r < value_; ++r) {
          out[h * value_ + r] += scores[j] / sum * value[r];
        }
      }
    }
    return out;
  }

  size_t latentCols() const { return latent_; }

 private:
  void turnLast(Vector* vector, const Float64Rope& rope, size_t position) const {
    const auto first = vector->end() - static_cast<std::ptrdiff_t>(rope_);
    const Vector turned = rope.rotated(Vector(first, vector->end()), position);
    std::copy(turned.begin(), turned.end(), first);
  }

  /// Position of a head's matrix: row r and column c at [first + head * h + row * r + column * c].
  struct Matrix {
    const Vector& values;
    size_t first, head, row, column;
    /// Of one head, [rows][cols].
    Vector of(size_t h, size_t rows, size_t cols) const {
      Vector out;
      out.reserve(rows * cols);
      for (size_t r = 0; r < rows; ++r) {
        for (size_t c = 0; c < cols; ++c) {
          out.push_back(values[first + head * h + row * r + column * c]);
        }
      }
      return out;
    }
  };
  // Matrices of keys alone have one row per value of a latent.
  Matrix keys(const std::string& prefix) {
    const size_t plain = key_ - rope_;
    if (weights_.has(prefix + "attn_k_b.weight")) {
      return {weights_[prefix + "attn_k_b.weight"], 0, latent_ * plain, 1, plain};
    }
    return {weights_[prefix + "attn_kv_b.weight"], 0, (plain + value_) * latent_, latent_, 1};
  }
  Matrix values(const std::string& prefix) {
    const size_t plain = key_ - rope_;
    if (weights_.has(prefix + "attn_v_b.weight")) {
      return {weights_[prefix + "attn_v_b.weight"], 0, value_ * latent_, latent_, 1};
    }
    return {weights_[prefix + "attn_kv_b.weight"], plain * latent_, (plain + value_) * latent_,
            latent_, 1};
  }

  Float64Weights& weights_;
  size_t latent_ = 0, heads_ = 0, rope_ = 0, key_ = 0, value_ = 0;
  double scale_ = 1;
};

// A mixture of experts in float64, from the definition. Tests only.

class Float64Experts {
 public:
  explicit Float64Experts(Float64Weights* weights) : weights_(*weights) {}

  bool in(const std::string& prefix) const { return weights_.has(prefix + "ffn_gate_inp.weight"); }

  /// The sum of one layer's experts, and of a shared one if present, for `z`.
  std::vector<double> sum(const std::string& prefix, const std::vector<double>& z) {
    const std::vector<double> scores = scoresOf(prefix, z);
    const std::vector<size_t> chosen = choose(prefix, scores);
    double total = 0;
    for (const size_t expert : chosen) {
      total += scores[expert];
    }
    std::vector<double> out(z.size());
    for (const size_t expert : chosen) {
      const bool says = weights_.architecture() == "deepseek2";
      const bool divides =
          says ? weights_.flag("expert_weights_norm", false) : weights_.architecture() != "olmoe";
      const double scale = says ? weights_.real("expert_weights_scale", 1) : 1;
      const double by = scale != 0 ? scale : 1;
      const double weight = by * scores[expert] / (divides ? std::max(total, 6.1035e-5) : 1.0);
      addScaled(gated(prefix, "exps.weight", expert, z), weight, &out);
    }
    if (weights_.has(prefix + "ffn_up_shexp.weight")) {
      addScaled(gated(prefix, "shexp.weight", 0, z), 1, &out);
    }
    return out;
  }

  /// Smallest margin of a choice so far: the difference in the router's logits between the last chosen expert and the
  /// next one (for sigmoids: four times that of their values, with biases).
  double leastMargin() const { return least_margin_; }

 private:
  std::vector<double> scoresOf(const std::string& prefix, const std::vector<double>& z) {
    std::vector<double> scores =
        rowsTimes(weights_[prefix + "ffn_gate_inp.weight"], 0, weights_.number("expert_count"), z);
    if (weights_.number("expert_gating_func", 1) == 2) {
      for (double& score : scores) {
        score = 1 / (1 + std::exp(-score));
      }
      return scores;
    }
    double sum = 0;
    for (double& score : scores) {
      score = std::exp(score);
      sum += score;
    }
    for (double& score : scores) {
      score /= sum;
    }
    return scores;
  }

  std::vector<size_t> choose(const std::string& prefix, const std::vector<double>& scores) {
    std::vector<double> ranked = scores;
    if (weights_.has(prefix + "exp_probs_b.bias")) {
      addScaled(weights_[prefix + "exp_probs_b.bias"], 1, &ranked);
    }
    std::vector<size_t> order(ranked.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return ranked[a] > ranked[b]; });
    const size_t used = weights_.number("expert_used_count");
    if (used < order.size()) {
      const double last = ranked[order[used - 1]];
      const double next = ranked[order[used]];
      const bool sigmoid = weights_.number("expert_gating_func", 1) == 2;
      least_margin_ = std::min(least_margin_, sigmoid ? 4 * (last - next) : std::log(last / next));
    }
    order.resize(used);
    return order;
  }

  std::vector<double> gated(const std::string& prefix, const std::string& name, size_t expert,
                            const std::vector<double>& z) {
    const std::vector<double>& up = weights_[prefix + "ffn_up_" + name];
    const bool shared = name == "shexp.weight";
    const size_t n_ff =
        up.size() / z.size() / (shared ? size_t{1} : weights_.number("expert_count"));
    std::vector<double> gate =
        rowsTimes(weights_[prefix + "ffn_gate_" + name], expert * n_ff, n_ff, z);
    const std::vector<double> by = rowsTimes(up, expert * n_ff, n_ff, z);
    for (size_t i = 0; i < n_ff; ++i) {
      gate[i] = gate[i] / (1 + std::exp(-gate[i])) * by[i];
    }
    return rowsTimes(weights_[prefix + "ffn_down_" + name], expert * z.size(), z.size(), gate);
  }

  static std::vector<double> rowsTimes(const std::vector<double>& matrix, size_t first, size_t rows,
                                       const std::vector<double>& x) {
    return test::rowsTimes(matrix.data() + first * x.size(), rows, x.data(), x.size());
  }
  static void addScaled(const std::vector<double>& x, double factor, std::vector<double>* y) {
    for (size_t i = 0; i < x.size(); ++i) {
      (*y)[i] += factor * x[i];
    }
  }

  Float64Weights& weights_;
  double least_margin_ = std::numeric_limits<double>::infinity();
};

// Recurrent states in float64, token by token, from the papers: the gated delta rule (Yang, Kautz and Hatamizadeh 2024),
// the same with decays by key (Kimi Team 2025) and Mamba-2 (Dao and Gu 2024). Shares only push constants with the library: layouts and formulas are implemented a
// second time here. Tests only.

using Doubles = std::vector<double>;

inline double softplus64(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
inline double sigmoid64(double x) { return 1 / (1 + std::exp(-x)); }
inline double gate64(uint32_t gate, double x) {
  return gate == kGateSilu       ? x * sigmoid64(x)
         : gate == kGateSigmoid  ? sigmoid64(x)
         : gate == kGateSoftplus ? softplus64(x)
                                 : softplus64(x) / std::log(2.0);
}

inline Doubles doublesOf(const std::vector<float>& values) {
  return Doubles(values.begin(), values.end());
}

// ---- Inputs of a state ------------------------------------------------------------------------------------

struct Float64Inputs {
  Doubles rows;     ///< [tokens][queries, keys, values, decays, factors]
  Doubles columns;  ///< [taps - 1][channels], after the last token
};

/// `in`: [tokens][in_stride]; `columns`: [taps - 1][channels] before the first token.
inline Float64Inputs float64StateInputs(const StateInputsPush& p, uint32_t n_tokens,
                                        const Doubles& in, const Doubles& columns,
                                        const Doubles& taps, const Doubles& gates) {
  const size_t n_keys = size_t{p.key_heads} * p.key_dim, n_values = size_t{p.heads} * p.value_dim;
  const size_t each = p.by_key != 0 ? p.key_dim : 1, n_decays = p.heads * each;
  const size_t channels = 2 * n_keys + n_values, width = channels + n_decays + p.heads;
  const bool delta = p.delta != 0;
  const size_t first_channel = delta ? 0 : n_values;
  const size_t first_decay = delta ? channels + n_values + p.heads : n_values + channels;
  // Positions of queries, keys and values among the input channels.
  const size_t queries = delta ? 0 : n_values + n_keys;
  const size_t keys = delta ? n_keys : n_values;
  const size_t values = delta ? 2 * n_keys : 0;
  Doubles seen = columns;
  for (uint32_t t = 0; t < n_tokens; ++t) {
    const auto row = in.begin() + static_cast<int64_t>(size_t{t} * p.in_stride + first_channel);
    seen.insert(seen.end(), row, row + static_cast<int64_t>(channels));
  }
  Float64Inputs out;
  for (uint32_t t = 0; t < n_tokens; ++t) {
    Doubles y(channels);
    for (size_t c = 0; c < channels; ++c) {
      double sum = p.has_bias != 0 ? taps[channels * p.taps + c] : 0;
      for (size_t j = 0; j < p.taps; ++j) {
        sum += taps[c * p.taps + j] * seen[(t + j) * channels + c];
      }
      y[c] = sum * sigmoid64(sum);
    }
    Doubles row(width);
    for (size_t c = 0; c < n_keys; ++c) {
      row[c] = y[queries + c];
      row[n_keys + c] = y[keys + c];
    }
    for (size_t c = 0; c < n_values; ++c) {
      row[2 * n_keys + c] = y[values + c];
    }
    for (size_t h = 0; delta && h < 2 * size_t{p.key_heads}; ++h) {
      double squares = 0;
      for (size_t i = 0; i < p.key_dim; ++i) {
        squares += row[h * p.key_dim + i] * row[h * p.key_dim + i];
      }
      const double length = std::max(std::sqrt(squares), static_cast<double>(p.eps));
      for (size_t i = 0; i < p.key_dim; ++i) {
        row[h * p.key_dim + i] /= length;
      }
    }
    for (size_t h = 0; h < p.heads; ++h) {
      const size_t at = size_t{t} * p.in_stride + first_decay;
      const double rate = gates[n_decays + h];
      for (size_t i = h * each; i < (h + 1) * each; ++i) {
        const double x = in[at + i] + gates[i];
        row[channels + i] =
            std::exp(p.by_key != 0 ? static_cast<double>(p.least) * sigmoid64(rate * x)
                                   : rate * softplus64(x));
      }
      row[channels + n_decays + h] =
          delta ? sigmoid64(in[at - p.heads + h]) : softplus64(in[at + h] + gates[h]);
    }
    out.rows.insert(out.rows.end(), row.begin(), row.end());
  }
  out.columns.assign(seen.end() - static_cast<int64_t>((p.taps - 1) * channels), seen.end());
  return out;
}

// ---- The recurrence --------------------------------------------------------------------------------------

/// `in`: [tokens][in_stride]; `state`: [heads][value_dim][key_dim], becomes the state after the last token. The
/// result is [tokens][heads * value_dim].
inline Doubles float64StateScan(const StateScanPush& p, uint32_t n_tokens, const Doubles& in,
                                const Doubles& gates, Doubles* state) {
  const size_t n_keys = size_t{p.key_heads} * p.key_dim, n_values = size_t{p.heads} * p.value_dim;
  Doubles out(n_tokens * n_values);
  for (uint32_t t = 0; t < n_tokens; ++t) {
    const double* const row = in.data() + size_t{t} * p.in_stride;
    for (size_t h = 0; h < p.heads; ++h) {
      const size_t shared = p.tiled != 0 ? h % p.key_heads : h / (p.heads / p.key_heads);
      const double* const query = row + shared * p.key_dim;
      const double* const key = row + n_keys + shared * p.key_dim;
      const double* const decays = row + 2 * n_keys + n_values;
      const double factor = decays[(p.by_key != 0 ? p.heads * p.key_dim : p.heads) + h];
      for (size_t i = 0; i < p.value_dim; ++i) {
        double* const s = state->data() + (h * p.value_dim + i) * p.key_dim;
        const double value = row[2 * n_keys + h * p.value_dim + i];
        double known = 0;
        for (size_t n = 0; n < p.key_dim; ++n) {
          s[n] *= decays[p.by_key != 0 ? h * p.key_dim + n : h];
          known += s[n] * key[n];
        }
        const double taken = factor * (p.delta != 0 ? value - known : value);
        double sum = 0;
        for (size_t n = 0; n < p.key_dim; ++n) {
          s[n] += taken * key[n];
          sum += s[n] * query[n];
        }
        out[t * n_values + h * p.value_dim + i] =
            static_cast<double>(p.scale) * sum +
            (p.delta != 0 ? 0 : gates[2 * p.heads + h] * value);
      }
    }
  }
  return out;
}

// ---- Output -------------------------------------------------------------------------------------------------

/// `in`: [tokens][in_stride]; `gates`: [tokens][gate_stride]. The result is [tokens][rows * cols].
inline Doubles float64GatedNorm(const GatedNormPush& p, uint32_t n_tokens, const Doubles& in,
                                const Doubles& gates, const Doubles& weight) {
  Doubles out;
  for (uint32_t t = 0; t < n_tokens; ++t) {
    for (size_t r = 0; r < p.rows; ++r) {
      Doubles x(p.cols), gate(p.cols);
      for (size_t c = 0; c < p.cols; ++c) {
        const size_t of = p.gate_rows != 0 ? r : r * p.cols + c;
        gate[c] = gate64(p.gate, gates[size_t{t} * p.gate_stride + p.gate_first + of]);
        x[c] = in[size_t{t} * p.in_stride + r * p.cols + c] * (p.norm_last != 0 ? gate[c] : 1);
      }
      double squares = 0;
      for (const double value : x) {
        squares += value * value;
      }
      const double length = std::sqrt(squares / p.cols + static_cast<double>(p.eps));
      for (size_t c = 0; c < p.cols; ++c) {
        const double normed = p.has_norm != 0
                                  ? weight[p.weight_rows != 0 ? r * p.cols + c : c] * x[c] / length
                                  : x[c];
        out.push_back(normed * (p.norm_last != 0 ? 1 : gate[c]));
      }
    }
  }
  return out;
}

// ---- Stored matrices -----------------------------------------------------------------------------------------

/// [rows][key_dim] values of a slot that begins at `words`.
inline Doubles unpackState(StateFormat format, const uint32_t* words, uint32_t rows,
                           uint32_t key_dim) {
  const uint32_t bits = format == StateFormat::kF32 ? 32 : format == StateFormat::kF16 ? 16 : 8;
  const uint32_t row_words = (key_dim * bits + 31) / 32, groups = (key_dim + 31) / 32;
  const auto half = [](const uint32_t* halves, uint32_t i) {
    return static_cast<double>(halfToFloat(static_cast<uint16_t>(halves[i / 2] >> (16 * (i % 2)))));
  };
  Doubles values;
  for (uint32_t r = 0; r < rows; ++r) {
    const uint32_t* const row = words + size_t{r} * row_words;
    for (uint32_t i = 0; i < key_dim; ++i) {
      if (format == StateFormat::kF32) {
        values.push_back(static_cast<double>(bitsToFloat(row[i])));
      } else if (format == StateFormat::kF16) {
        values.push_back(half(row, i));
      } else {
        const int code = static_cast<int8_t>(row[i / 4] >> (8 * (i % 4)) & 0xffu);
        values.push_back(code * half(words + size_t{rows} * row_words, r * groups + i / 32));
      }
    }
  }
  return values;
}

/// Random matrices in a format: int8 with a separate scale for each group.
template <typename Random>
std::vector<uint32_t> randomState(StateFormat format, uint32_t rows, uint32_t key_dim,
                                  Random* random) {
  std::vector<uint32_t> words(stateMatrixWords(format, rows, key_dim), 0);
  const uint32_t row_words = stateValueWords(format, key_dim);
  const auto putHalf = [](uint32_t* halves, uint32_t i, float value) {
    halves[i / 2] |= static_cast<uint32_t>(floatToHalf(value)) << (16 * (i % 2));
  };
  for (uint32_t r = 0; r < rows; ++r) {
    uint32_t* const row = words.data() + size_t{r} * row_words;
    for (uint32_t i = 0; i < key_dim; ++i) {
      if (format == StateFormat::kF32) {
        row[i] = floatToBits(random->normal(0.3f));
      } else if (format == StateFormat::kF16) {
        putHalf(row, i, random->normal(0.3f));
      } else {
        row[i / 4] |= ((random->below(255) - 127) & 0xffu) << (8 * (i % 4));
        if (i % 32 == 0) {
          putHalf(words.data() + size_t{rows} * row_words, r * ((key_dim + 31) / 32) + i / 32,
                  0.002f + 0.002f * std::fabs(random->normal()));
        }
      }
    }
  }
  return words;
}

/// Allowed distance of a stored value from `want`, in a row of `key_dim` from `row` on.
inline double storedError(StateFormat format, const double* row, uint32_t i, uint32_t key_dim) {
  if (format == StateFormat::kF32) {
    return 0;
  }
  if (format == StateFormat::kF16) {
    return std::fabs(row[i]) / 2048 + 3e-8;
  }
  double most = 0;
  for (uint32_t n = i / 32 * 32; n < std::min(i / 32 * 32 + 32, key_dim); ++n) {
    most = std::max(most, std::fabs(row[n]));
  }
  return most / 127 * 0.51 + 5e-6;  // half a step, and the scale is a half, maybe subnormal
}

}  // namespace oriel_internal::test
