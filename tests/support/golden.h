// Models with exact logits, and distances from a reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "support/encoding.h"

namespace oriel_internal::test {

// Distances between results and a reference.

/// The greater of two errors, NaN if one is NaN: std::max(a, b) is a if b is NaN.
inline double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

/// Infinite if the sizes differ.
template <typename A, typename B>
double relativeL2(const std::vector<A>& got, const std::vector<B>& want) {
  if (got.size() != want.size()) {
    return HUGE_VAL;
  }
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double d = static_cast<double>(got[i]) - static_cast<double>(want[i]);
    error += d * d;
    norm += static_cast<double>(want[i]) * static_cast<double>(want[i]);
  }
  return std::sqrt(error / norm);
}

/// ln sum exp(logit): minus this, logits are log-probabilities.
template <typename Number>
double logSumExp(const std::vector<Number>& logits) {
  double most = -1e300;
  for (const Number logit : logits) {
    most = std::max<double>(most, logit);
  }
  double sum = 0;
  for (const Number logit : logits) {
    sum += std::exp(logit - most);
  }
  return most + std::log(sum);
}

/// Mean KL(reference || other) in nats over the rows.
inline double meanDivergence(const std::vector<std::vector<float>>& reference,
                             const std::vector<std::vector<float>>& other) {
  double total = 0;
  for (size_t t = 0; t < reference.size(); ++t) {
    const double zp = logSumExp(reference[t]);
    const double zq = logSumExp(other[t]);
    for (size_t i = 0; i < reference[t].size(); ++i) {
      const double log_p = reference[t][i] - zp;
      total += std::exp(log_p) * (log_p - (other[t][i] - zq));
    }
  }
  return total / static_cast<double>(reference.size());
}

// Requirements for a device on the models of tests/data/logits.json.

struct GoldenModel {
  std::string name;  ///< models/<name>.gguf
  double tolerance;  ///< relative L2, against the dequantised weights, cache in f16
};
/// Without this gtest prints bytes of every model at each program start.
inline void PrintTo(const GoldenModel& model, std::ostream* out) { *out << model.name; }

/// The models in `path`, data/logits.json, that have a tolerance.
inline std::vector<GoldenModel> goldenModels(const std::string& path) {
  // Each program reads it to know its tests: four fifths of it, the logits, are not parsed.
  const std::vector<uint8_t> bytes = readBytes(path);
  std::string text;
  for (auto at = bytes.begin(); at != bytes.end();) {
    const auto begin = std::find(at, bytes.end(), '"');
    const auto end = begin == bytes.end() ? begin : std::find(begin + 1, bytes.end(), '"') + 1;
    text.append(at, end - begin > 200 ? begin + 1 : end).append(end - begin > 200 ? "\"" : "");
    at = end;
  }
  const nlohmann::json file = nlohmann::json::parse(text);
  std::vector<GoldenModel> models;
  for (const auto& [name, model] : file.at("models").items()) {
    if (model.contains("relative_l2")) {
      models.push_back({name, model["relative_l2"]});
    }
  }
  return models;
}

/// True if some token's chosen experts have scores closer than the tolerance: other rounding may choose another expert,
/// with a very different result.
inline bool hasCloseExperts(const nlohmann::json& exact, double tolerance) {
  if (!exact.contains("expert_margin_min_over_prompt")) {
    return false;
  }
  for (const nlohmann::json& margin : exact["expert_margin_min_over_prompt"]) {
    if (!margin.is_null() && margin.get<double>() < tolerance) {  // null: a layer without experts
      return true;
    }
  }
  return false;
}

/// Greedy continuations must be equal up to the first step whose two best logits are closer than the error allowed for
/// one of them (six times the root mean square), or whose experts are close.
inline size_t trustedSteps(const nlohmann::json& exact, double tolerance) {
  const std::vector<float> logits = base64As<float>(exact["logits_f32_b64"]);
  double norm = 0;
  for (const float logit : logits) {
    norm += static_cast<double>(logit) * logit;
  }
  const double error = 6 * tolerance * std::sqrt(norm / static_cast<double>(logits.size()));
  const std::vector<double> margins = exact["greedy_margin"];
  const std::vector<double> of_experts = exact.value("greedy_expert_margin", std::vector<double>());
  size_t steps = 0;
  while (steps < margins.size() && margins[steps] >= error &&
         (steps >= of_experts.size() || of_experts[steps] >= tolerance)) {
    ++steps;
  }
  return steps;
}

}  // namespace oriel_internal::test
