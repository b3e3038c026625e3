// What a device must reach on the models of tests/data/logits.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/encoding.h"

namespace oriel::test {

struct GoldenModel {
  std::string name;  ///< models/<name>.gguf, logits/<name>.json
  double tolerance;  ///< relative L2, against the dequantised weights, cache in f16
};

/// What `path`, data/logits/tolerances.json, says.
inline std::vector<GoldenModel> goldenModels(const std::string& path) {
  const nlohmann::json file = readJson(path);
  std::vector<GoldenModel> models;
  for (const auto& [name, tolerance] : file.at("relative_l2").items()) {
    models.push_back({name, tolerance});
  }
  return models;
}

/// Greedy continuations must be equal up to the first step whose two best logits lie closer than the
/// error that the tolerance allows one of them: six times the root mean square.
inline size_t trustedSteps(const nlohmann::json& exact, double tolerance) {
  const std::vector<float> logits = base64As<float>(exact["logits_f32_b64"]);
  double norm = 0;
  for (const float logit : logits) {
    norm += static_cast<double>(logit) * logit;
  }
  const double error = 6 * tolerance * std::sqrt(norm / static_cast<double>(logits.size()));
  size_t steps = 0;
  for (const double margin : exact["greedy_margin"]) {
    if (margin < error) {
      break;
    }
    ++steps;
  }
  return steps;
}

}  // namespace oriel::test
