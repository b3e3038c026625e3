// Keys and dequantised tensors of a model file, for float64 references. Shares only the GGUF reader with the library;
// unreadable data is an exception. Tests only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/half.h"
#include "base/log.h"
#include "gguf/gguf.h"
#include "support/files.h"

namespace oriel_internal::test {

inline std::vector<double> part(const std::vector<double>& x, size_t first, size_t count) {
  const auto begin = x.begin() + static_cast<std::ptrdiff_t>(first);
  return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(count));
}

/// `rows` rows of a matrix times a vector of `cols` values. Four independent sums at a time.
inline std::vector<double> rowsTimes(const double* matrix, size_t rows, const double* x,
                                     size_t cols) {
  std::vector<double> y(rows);
  size_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const double* const a = matrix + r * cols;
    const double* const b = a + cols;
    const double* const c = b + cols;
    const double* const d = c + cols;
    double sum_a = 0, sum_b = 0, sum_c = 0, sum_d = 0;
    for (size_t i = 0; i < cols; ++i) {
      sum_a += a[i] * x[i];
      sum_b += b[i] * x[i];
      sum_c += c[i] * x[i];
      sum_d += d[i] * x[i];
    }
    y[r] = sum_a;
    y[r + 1] = sum_b;
    y[r + 2] = sum_c;
    y[r + 3] = sum_d;
  }
  for (; r < rows; ++r) {
    double sum = 0;
    for (size_t i = 0; i < cols; ++i) {
      sum += matrix[r * cols + i] * x[i];
    }
    y[r] = sum;
  }
  return y;
}

class Float64Weights {
 public:
  explicit Float64Weights(const std::string& path) : bytes_(readBytes(path)) {
    if (!file_.open(bytes_.data(), bytes_.size(), Log()).ok()) {
      throw std::runtime_error("cannot read " + path);
    }
    architecture_ = text("general.architecture", "");
    if (architecture_.empty()) {
      throw std::runtime_error("no architecture in " + path);
    }
  }

  const std::string& architecture() const { return architecture_; }

  // Keys are named without the architecture prefix.
  size_t number(const std::string& suffix) const {
    uint64_t value = 0;
    if (!file_.getUint(key(suffix).c_str(), &value)) {
      throw std::runtime_error(key(suffix));
    }
    return value;
  }
  size_t number(const std::string& suffix, size_t otherwise) const {
    uint64_t value = 0;
    return file_.getUint(key(suffix).c_str(), &value) ? value : otherwise;
  }
  double real(const std::string& suffix, double otherwise) const {
    double value = 0;
    return file_.getFloat(key(suffix).c_str(), &value) ? value : otherwise;
  }
  bool flag(const std::string& suffix, bool otherwise) const {
    bool value = false;
    return file_.getBool(key(suffix).c_str(), &value) ? value : otherwise;
  }
  std::string scalingType() const { return text(key("rope.scaling.type"), "linear"); }
  /// One number per layer, from an array or a single number.
  std::vector<size_t> numbers(const std::string& suffix, size_t n_layers) const {
    GgufArray array;
    if (!file_.getArray(key(suffix).c_str(), &array)) {
      return std::vector<size_t>(n_layers, number(suffix));
    }
    std::vector<size_t> values;
    GgufArrayReader reader(array);
    for (int64_t value = 0; reader.nextInt(&value);) {
      values.push_back(static_cast<size_t>(value));
    }
    if (values.size() != n_layers) {
      throw std::runtime_error(key(suffix) + " has another length");
    }
    return values;
  }

  std::vector<bool> flags(const std::string& suffix) const {
    GgufArray array;
    (void)file_.getArray(key(suffix).c_str(), &array);
    std::vector<bool> values;
    GgufArrayReader reader(array);
    for (bool value = false; reader.nextBool(&value);) {
      values.push_back(value);
    }
    return values;
  }

  /// Adds `scale` times an adapter's products to the matrices, as merged weights have them. Not for token_embd, whose
  /// adapter changes the lookup only.
  void adapt(const std::string& path, double scale) {
    Float64Weights adapter(path);
    double alpha = 0;
    (void)adapter.file_.getFloat("adapter.lora.alpha", &alpha);
    GgufTensor half;
    for (uint64_t cursor = 0; adapter.file_.nextTensor(&cursor, &half);) {
      const std::string name(half.name.data, half.name.bytes);
      const size_t end = name.rfind(".lora_b");
      if (end == std::string::npos) {
        continue;
      }
      const std::string matrix = name.substr(0, end);
      if (matrix == "token_embd.weight") {
        throw std::runtime_error(matrix);
      }
      const size_t rank = half.dims[0];
      const size_t rows = half.dims[1];
      const std::vector<double>& a = adapter[matrix + ".lora_a"];
      const std::vector<double>& b = adapter[name];
      (void)(*this)[matrix];
      std::vector<double>& w = values_[matrix];
      const size_t cols = w.size() / (b.size() / rank);
      const double factor = alpha != 0 ? scale * alpha / static_cast<double>(rank) : scale;
      for (size_t row = 0; row < w.size() / cols; ++row) {  // of all experts
        for (size_t i = 0; i < rank; ++i) {
          const double by = factor * b[row * rank + i];
          const double* const of = a.data() + (row / rows * rank + i) * cols;
          for (size_t c = 0; c < cols; ++c) {
            w[row * cols + c] += by * of[c];
          }
        }
      }
    }
  }

  bool has(const std::string& name) const {
    const auto known = has_.find(name);
    if (known != has_.end()) {
      return known->second;
    }
    GgufTensor tensor;
    return has_[name] = file_.findTensor(name.c_str(), &tensor);
  }

  const std::vector<double>& operator[](const std::string& name) {
    const auto found = values_.find(name);
    return found != values_.end() ? found->second : values_[name] = dequantised(name);
  }
  /// The matrix times a vector; rows have the vector's length.
  std::vector<double> product(const std::string& name, const std::vector<double>& x) {
    const std::vector<double>& w = (*this)[name];
    return rowsTimes(w.data(), w.size() / x.size(), x.data(), x.size());
  }

 private:
  std::string key(const std::string& suffix) const { return architecture_ + "." + suffix; }
  std::string text(const std::string& name, const std::string& otherwise) const {
    GgufString value;
    return file_.getString(name.c_str(), &value) ? std::string(value.data, value.bytes) : otherwise;
  }

  static double halfValue(uint16_t bits) {
    const int exponent = (bits >> 10) & 31;
    const int mantissa = bits & 1023;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    return exponent == 0 ? sign * std::ldexp(mantissa, -24)
                         : sign * std::ldexp(1024 + mantissa, exponent - 25);
  }

  std::vector<double> dequantised(const std::string& name) const {
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
    return values;
  }

  std::vector<uint8_t> bytes_;
  GgufFile file_;
  std::string architecture_;
  std::unordered_map<std::string, std::vector<double>> values_;
  mutable std::unordered_map<std::string, bool> has_;  ///< cached answers: a file is searched once
};

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

// Recurrent states in float64, from the papers' recurrences, one token at a time: the gated delta rule (Yang, Kautz and
// Hatamizadeh, 2024) and Mamba-2 (Dao and Gu, 2024), for files of Qwen3.5, Granite 4, Falcon-H1 and Mamba-2. Tests
// only.

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

// Forward passes in float64, from the definitions: one token at a time, keys kept before RoPE, cache positions assigned
// at every step (as in StreamingLLM). Windowed layers see the last tokens at their own positions; short convolutions
// and states see every token. Shares only the GGUF reader with the library: architectures are implemented a second time
// here. Tests only.

class Float64Model {
 public:
  /// `rounds_cache`: rounds keys and values to f16, like the best cache. This error is inherent in any implementation
  /// with such a cache.
  explicit Float64Model(const std::string& path, bool rounds_cache = false)
      : weights_(path), rounds_(rounds_cache) {
    const size_t n_blocks = weights_.number("block_count");
    n_layers_ = n_blocks - weights_.number("nextn_predict_layers", 0);
    n_heads_ = weights_.number("attention.head_count", 0);
    n_embd_ = weights_.number("embedding_length");
    if (n_heads_ != 0) {
      n_kv_heads_ = weights_.numbers("attention.head_count_kv", n_blocks);
      head_dim_ = weights_.number("attention.key_length", n_embd_ / n_heads_);
    }
    eps_ = weights_.real("attention.layer_norm_rms_epsilon", 1e-5);
    windows_ = float64Windows(weights_, n_layers_);
    for (size_t layer = 0; layer < n_layers_; ++layer) {
      const bool slides = windows_[layer] != 0;
      heads_.push_back(slides ? weights_.number("attention.key_length_swa", head_dim_) : head_dim_);
      ropes_.emplace_back(&weights_, layer, n_layers_, heads_[layer], slides);
    }
    readMultipliers();
    keys_.resize(n_layers_);
    values_.resize(n_layers_);
    columns_.resize(n_layers_);
    states_ = std::make_unique<Float64States>(&weights_, n_layers_);
  }

  /// Merges an adapter (Float64Weights).
  void adapt(const std::string& adapter, double scale) { weights_.adapt(adapter, scale); }

  const Float64States& states() const { return *states_; }

  /// Smallest margin of the router's choices so far (support/float64_model.h).
  double leastMargin() const { return experts_.leastMargin(); }

  /// Output of the last norm for the latest token.
  const std::vector<double>& lastNorm() const { return last_norm_; }

  // For drafting (support/float64_draft.h).

  /// A token's embedding row as input to the first layer.
  std::vector<double> embedded(int32_t id) {
    std::vector<double> x =
        part(weights_["token_embd.weight"], static_cast<size_t>(id) * n_embd_, n_embd_);
    scale(&x, embedding_scale_);
    return x;
  }
  /// Unrotated keys, and values, that the next token would see.
  struct Kept {
    size_t layer = 0;
    size_t n_heads = 0;
    size_t first = 0;  ///< position of the oldest
    std::vector<std::vector<double>> keys, values;
  };
  /// For the last layer that slides, or the last that does not.
  Kept keptForNext(bool slides, size_t sinks, size_t window) const {
    size_t layer = n_layers_ - 1;
    while ((windows_[layer] != 0) != slides) {
      --layer;
    }
    Kept kept;
    kept.layer = memoryOf(layer);
    kept.n_heads = n_kv_heads_[kept.layer];
    kept.keys = keys_[kept.layer];
    kept.values = values_[kept.layer];
    const size_t kept_sinks = slides ? 0 : sinks;
    const size_t most = slides ? std::min(windows_[layer], sinks + window) : sinks + window;
    while (kept.keys.size() + 1 > most) {
      kept.keys.erase(kept.keys.begin() + static_cast<std::ptrdiff_t>(kept_sinks));
      kept.values.erase(kept.values.begin() + static_cast<std::ptrdiff_t>(kept_sinks));
    }
    kept.first = slides ? n_tokens_ - kept.keys.size() : 0;
    return kept;
  }
  std::vector<double> rotatedKey(const Kept& kept, size_t index, size_t head) const {
    const size_t dim = heads_[kept.layer];
    return ropes_[kept.layer].rotated(part(kept.keys[index], head * dim, dim), kept.first + index);
  }

  size_t nVocab() { return weights_["token_embd.weight"].size() / n_embd_; }

  /// From the next step on these layers see at most this many tokens of the window, by layer; 0: all. Positions follow
  /// the tokens seen by the other layers.
  void seeLess(const std::vector<size_t>& windows) { shorter_ = windows; }

  /// Logits after one more token that sees the first `sinks` and the last `window` tokens. The window may change between
  /// steps; a token that was hidden once stays hidden.
  std::vector<double> step(int32_t id, size_t sinks, size_t window) {
    seen_ = std::min(seen_ + 1, sinks + window);
    const std::vector<double>& embedding = weights_["token_embd.weight"];
    std::vector<double> x = part(embedding, static_cast<size_t>(id) * n_embd_, n_embd_);
    scale(&x, embedding_scale_);
    const std::vector<double> inputs = layerInputs(id, x);
    for (size_t layer = 0; layer < n_layers_; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      const std::vector<double> u = normUnlessPost(x, prefix + "attn_norm.weight");
      std::vector<double> mixed(n_embd_);
      if (weights_.has(prefix + "attn_output.weight")) {
        add(&mixed, attention(layer, prefix, u, sinks, window));
      } else if (weights_.has(prefix + "shortconv.conv.weight")) {
        add(&mixed, convolution(layer, prefix, u));
      }
      if (states_->in(prefix)) {
        add(&mixed, states_->step(layer, prefix, u));
      }
      if (!is("qwen35")) {  // other architectures name the FFN's norm this way
        mixed = normIfThere(mixed, prefix + "post_attention_norm.weight");
      }
      scale(&mixed, residual_scale_);
      add(&x, mixed);
      if (is("mamba2")) {
        continue;
      }
      const std::vector<double> z =
          normUnlessPost(x, prefix + (is("qwen35")      ? "post_attention_norm.weight"
                                      : is("falcon-h1") ? "ffn_norm"
                                                        : "ffn_norm.weight"));
      std::vector<double> fed =
          experts_.in(prefix) ? experts_.sum(prefix, z) : feedForward(prefix, z);
      fed = normIfThere(fed, prefix + "post_ffw_norm.weight");
      scale(&fed, residual_scale_);
      add(&x, fed);
      if (!inputs.empty()) {
        add(&x, layerInput(prefix, x, part(inputs, layer * input_, input_)));
      }
      if (weights_.has(prefix + "layer_output_scale.weight")) {
        scale(&x, weights_[prefix + "layer_output_scale.weight"][0]);
      }
    }
    ++n_tokens_;
    const std::string last_norm =
        is("lfm2") || is("lfm2moe") ? "token_embd_norm.weight" : "output_norm.weight";
    const bool untied = weights_.has("output.weight");
    last_norm_ = norm(x, last_norm);
    std::vector<double> logits =
        product(untied ? "output.weight" : "token_embd.weight", last_norm_);
    scale(&logits, logit_factor_);
    for (double& logit : logits) {
      logit = capped(logit, logit_cap_);
    }
    return logits;
  }

 private:
  // A key's or value's number as stored.
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
    if (is("gemma3") || is("gemma2") || is("gemma4")) {
      embedding_scale_ = std::sqrt(n);
    }
    if (is("gemma4")) {
      score_scale_ = 1;
      logit_cap_ = weights_.real("final_logit_softcapping", 30);
      input_ = weights_.number("embedding_length_per_layer_input");
    }
    if (is("gemma2")) {
      score_cap_ = weights_.real("attn_logit_softcapping", 50);
      logit_cap_ = weights_.real("final_logit_softcapping", 30);
      if (n_layers_ == 46) {  // 27B
        score_scale_ = 1 / std::sqrt(n / static_cast<double>(n_heads_));
      }
    }
    if (is("granite") || is("granitemoe") || is("granitehybrid")) {
      embedding_scale_ = givenOr("embedding_scale", 1);
      residual_scale_ = givenOr("residual_scale", 1);
      score_scale_ = givenOr("attention.scale", score_scale_);
      logit_factor_ = 1 / givenOr("logit_scale", 1);
    }
    if (is("minicpm3")) {
      embedding_scale_ = 12;
      residual_scale_ = 1.4 / std::sqrt(static_cast<double>(n_layers_));
      logit_factor_ = 256 / n;
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

  // ---- Inputs of the layers' own (Gemma 4) -------------------------------------------------------

  // [layer][input_]; empty: none.
  Vector layerInputs(int32_t id, const Vector& x) {
    if (input_ == 0) {
      return {};
    }
    const size_t all = input_ * n_layers_;
    Vector rows = part(weights_["per_layer_token_embd.weight"], static_cast<size_t>(id) * all, all);
    scale(&rows, std::sqrt(static_cast<double>(input_)));
    Vector projected = product("per_layer_model_proj.weight", x);
    scale(&projected, 1 / std::sqrt(static_cast<double>(n_embd_)));
    Vector inputs;
    for (size_t layer = 0; layer < n_layers_; ++layer) {
      const Vector of = norm(part(projected, layer * input_, input_), "per_layer_proj_norm.weight");
      inputs.insert(inputs.end(), of.begin(), of.end());
    }
    add(&inputs, rows);
    scale(&inputs, 1 / std::sqrt(2.0));
    return inputs;
  }

  Vector layerInput(const std::string& prefix, const Vector& x, const Vector& input) {
    Vector gate = product(prefix + "inp_gate.weight", x);
    for (size_t i = 0; i < input_; ++i) {
      gate[i] = activation(gate[i]) * input[i];
    }
    return norm(product(prefix + "proj.weight", gate), prefix + "post_norm.weight");
  }

  // ---- Mixers ------------------------------------------------------------------------------------

  Vector attention(size_t layer, const std::string& prefix, const Vector& u, size_t sinks,
                   size_t window) {
    if (latents_.there()) {
      return latentAttention(layer, prefix, u, sinks, window);
    }
    const size_t n_kv = n_kv_heads_[layer];
    Vector q = projection(prefix, "attn_q", u, 0, n_heads_);
    Vector gates;
    if (is("qwen35")) {  // for each head its query, then its gate
      Vector queries;
      for (size_t at = 0; at < q.size(); at += 2 * head_dim_) {
        const auto begin = q.begin() + static_cast<std::ptrdiff_t>(at);
        const auto middle = begin + static_cast<std::ptrdiff_t>(head_dim_);
        queries.insert(queries.end(), begin, middle);
        gates.insert(gates.end(), middle, middle + static_cast<std::ptrdiff_t>(head_dim_));
      }
      q = queries;
    }
    if (const size_t source = memoryOf(layer); source != layer) {
      q = headsNormed(q, prefix + "attn_q_norm.weight", heads_[layer]);
      const size_t seen = keys_[source].size();
      const bool slides = windows_[layer] != 0;
      return product(prefix + "attn_output.weight",
                     attend(layer, prefix, q, slides ? n_tokens_ + 1 - seen : 0, slides ? 0 : sinks,
                            slides ? 0 : seen_ - seen));
    }
    Vector k = projection(prefix, "attn_k", u, n_heads_, n_kv);
    Vector v = k;
    if (weights_.has(prefix + "attn_v.weight") || weights_.has(prefix + "attn_qkv.weight")) {
      v = projection(prefix, "attn_v", u, n_heads_ + n_kv, n_kv);
    }
    if (is("gemma4")) {
      v = headsNormed(v, "", heads_[layer]);
    }
    if (is("olmo2") || is("olmoe")) {  // over the whole row
      q = norm(q, prefix + "attn_q_norm.weight");
      k = norm(k, prefix + "attn_k_norm.weight");
    } else if (!is("hunyuan-dense")) {  // this architecture norms after rotation
      q = headsNormed(q, prefix + "attn_q_norm.weight", heads_[layer]);
      k = headsNormed(k, prefix + "attn_k_norm.weight", heads_[layer]);
    }
    keys_[layer].push_back(k);
    values_[layer].push_back(v);
    const size_t own = windows_[layer];
    const size_t kept_sinks = own != 0 ? 0 : sinks;
    const size_t kept = own != 0 ? std::min(own, sinks + window) : sinks + partOf(layer, window);
    while (keys_[layer].size() > kept) {
      keys_[layer].erase(keys_[layer].begin() + static_cast<std::ptrdiff_t>(kept_sinks));
      values_[layer].erase(values_[layer].begin() + static_cast<std::ptrdiff_t>(kept_sinks));
    }
    // Position of the oldest key: in the cache, or where it was read.
    const size_t first = own != 0 ? n_tokens_ + 1 - keys_[layer].size() : 0;
    const size_t gap = own != 0 ? 0 : seen_ - keys_[layer].size();
    Vector attended = attend(layer, prefix, q, first, kept_sinks, gap);
    for (size_t i = 0; i < gates.size(); ++i) {
      attended[i] /= 1 + std::exp(-gates[i]);
    }
    return product(prefix + "attn_output.weight", attended);
  }

  size_t partOf(size_t layer, size_t window) const {
    return shorter_.empty() || shorter_[layer] == 0 ? window : std::min(window, shorter_[layer]);
  }

  // A token's memory: its latent, then its key, which is rotated when seen.
  Vector latentAttention(size_t layer, const std::string& prefix, const Vector& u, size_t sinks,
                         size_t window) {
    Vector q =
        weights_.has(prefix + "attn_q.weight")
            ? product(prefix + "attn_q.weight", u)
            : product(prefix + "attn_q_b.weight", norm(product(prefix + "attn_q_a.weight", u),
                                                       prefix + "attn_q_a_norm.weight"));
    Vector vector = product(prefix + "attn_kv_a_mqa.weight", u);
    const Vector latent =
        norm(part(vector, 0, latents_.latentCols()), prefix + "attn_kv_a_norm.weight");
    std::copy(latent.begin(), latent.end(), vector.begin());
    keys_[layer].push_back(vector);
    while (keys_[layer].size() > sinks + window) {
      keys_[layer].erase(keys_[layer].begin() + static_cast<std::ptrdiff_t>(sinks));
    }
    return product(prefix + "attn_output.weight",
                   latents_.attend(prefix, q, keys_[layer], ropes_[layer], rounds_));
  }

  // The layer whose keys and values it reads: itself, or the last earlier one of its sort with memory.
  size_t memoryOf(size_t layer) const {
    const size_t owners =
        n_layers_ - (is("gemma4") ? weights_.number("attention.shared_kv_layers", 0) : 0);
    if (layer < owners) {
      return layer;
    }
    size_t source = owners - 1;
    while ((windows_[source] != 0) != (windows_[layer] != 0)) {
      --source;
    }
    return source;
  }

  // The oldest key is at position `first`. With norms after RoPE, scores do not depend on distances alone: window keys
  // are scored at their original positions, and sinks from the query's position in the cache. `gap`: tokens after the
  // sinks that only other layers see.
  Vector attend(size_t layer, const std::string& prefix, const Vector& query, size_t first,
                size_t sinks, size_t gap = 0) {
    const size_t head_dim = heads_[layer];
    const std::vector<Vector>& kept_keys = keys_[memoryOf(layer)];
    const std::vector<Vector>& kept_values = values_[memoryOf(layer)];
    const size_t n = kept_keys.size();
    const size_t shift = is("hunyuan-dense") ? n_tokens_ + 1 - first - n - gap : 0;
    const size_t n_kv = n_kv_heads_[layer];
    const size_t now = first + n + gap - 1;
    const std::string key_norm = prefix + "attn_k_norm.weight";
    std::vector<std::vector<Vector>> keys(n_kv);
    for (size_t kv = 0; kv < n_kv; ++kv) {
      for (size_t j = 0; j < n; ++j) {
        keys[kv].push_back(placed(layer, kept_keys[j], kv,
                                  j < sinks ? first + j : first + j + gap + shift, key_norm));
        for (double& value : keys[kv].back()) {
          value = stored(value);
        }
      }
    }
    Vector out(n_heads_ * head_dim);
    for (size_t h = 0; h < n_heads_; ++h) {
      const size_t kv = h / (n_heads_ / n_kv);
      Vector q = placed(layer, query, h, now, prefix + "attn_q_norm.weight");
      Vector ring_q =
          shift == 0 ? q : placed(layer, query, h, now + shift, prefix + "attn_q_norm.weight");
      if (temperature_scale_ != 0) {
        const auto contexts = static_cast<double>(now / temperature_tokens_);
        scale(&q, 1 + temperature_scale_ * std::log(contexts + 1));
        scale(&ring_q, 1 + temperature_scale_ * std::log(contexts + 1));
      }
      Vector scores(n);
      for (size_t j = 0; j < n; ++j) {
        const double* const asked = (j < sinks ? q : ring_q).data();
        const double* const key = keys[kv][j].data();
        double score = 0;
        for (size_t c = 0; c < head_dim; ++c) {
          score += asked[c] * key[c];
        }
        scores[j] = capped(score * score_scale_, score_cap_);
      }
      const double most = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double& score : scores) {
        score = std::exp(score - most);
        sum += score;
      }
      double* const to = out.data() + h * head_dim;
      for (size_t j = 0; j < n; ++j) {
        const double share = scores[j] / sum;
        const double* const value = kept_values[j].data() + kv * head_dim;
        for (size_t c = 0; c < head_dim; ++c) {
          to[c] += share * stored(value[c]);
        }
      }
    }
    return out;
  }

  // One head of a query or key, rotated to its position.
  Vector placed(size_t layer, const Vector& heads, size_t head, size_t position,
                const std::string& norm_name) {
    const Vector rotated =
        ropes_[layer].rotated(part(heads, head * heads_[layer], heads_[layer]), position);
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
    if (!is("gemma3") && !is("gemma2") && !is("gemma4")) {
      return x / (1 + std::exp(-x));
    }
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
  }

  Vector product(const std::string& name, const Vector& x) { return weights_.product(name, x); }

  // Some heads of attn_q, attn_k or attn_v; in fused matrices they begin at head `first`.
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

  // `name` empty: a weight of 1.
  Vector norm(const Vector& x, const std::string& name) {
    const double* const w = name.empty() ? nullptr : weights_[name].data();
    double sum = 0;
    for (const double v : x) {
      sum += v * v;
    }
    const double length = std::sqrt(sum / static_cast<double>(x.size()) + eps_);
    Vector y(x);
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] *= (w != nullptr ? w[i] : 1) / length;
    }
    return y;
  }
  Vector normIfThere(const Vector& x, const std::string& name) {
    return weights_.has(name) ? norm(x, name) : x;
  }
  Vector normUnlessPost(const Vector& x, const std::string& name) {
    return is("exaone4") || is("olmo2") ? x : norm(x, name);
  }
  Vector headsNormed(const Vector& heads, const std::string& name, size_t head_dim) {
    Vector out;
    for (size_t at = 0; at < heads.size(); at += head_dim) {
      const Vector one = part(heads, at, head_dim);
      const Vector head = name.empty() ? norm(one, name) : normIfThere(one, name);
      out.insert(out.end(), head.begin(), head.end());
    }
    return out;
  }

  Float64Weights weights_;
  Float64Experts experts_{&weights_};
  Float64Latent latents_{&weights_};
  const bool rounds_;
  size_t n_layers_ = 0, n_heads_ = 0, n_embd_ = 0, head_dim_ = 0;
  std::vector<size_t> n_kv_heads_;  ///< by layer
  size_t input_ = 0;                ///< values of a layer's own input
  std::vector<size_t> heads_;       ///< head size, by layer
  size_t seen_ = 0;                 ///< tokens seen by layers with the whole window
  std::vector<size_t> shorter_;     ///< by layer, see seeLess()
  std::vector<size_t> windows_;     ///< by layer; 0: the session's
  std::vector<Float64Rope> ropes_;  ///< by layer
  double eps_ = 0;
  double embedding_scale_ = 1, residual_scale_ = 1, score_scale_ = 1, logit_factor_ = 1;
  double score_cap_ = 0, logit_cap_ = 0;  ///< 0: none
  double temperature_scale_ = 0;          ///< of queries beyond the trained context
  size_t temperature_tokens_ = 1;
  size_t n_tokens_ = 0;
  std::vector<std::vector<Vector>> keys_, values_;
  std::vector<std::deque<Vector>> columns_;  ///< of short convolutions, oldest first
  std::vector<double> last_norm_;
  std::unique_ptr<Float64States> states_;
};

}  // namespace oriel_internal::test
