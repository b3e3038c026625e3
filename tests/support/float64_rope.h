// Layers with a window of their own, and each layer's rotation. Tests only.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>

#include "support/float64_weights.h"

namespace oriel_internal::test {

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

}  // namespace oriel_internal::test
