// A mixture of experts in float64, from the definition. Tests only.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "support/float64_weights.h"

namespace oriel_internal::test {

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

}  // namespace oriel_internal::test
