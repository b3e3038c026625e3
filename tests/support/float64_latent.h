// Latent attention in float64, from the definition (DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1): every head's keys
// and values are computed from each latent, without folding into queries. Tests only.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/half.h"
#include "support/float64_rope.h"
#include "support/float64_weights.h"

namespace oriel_internal::test {

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

}  // namespace oriel_internal::test
