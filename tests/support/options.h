// Options as tests set them.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "oriel/oriel.hpp"

namespace oriel_internal::test {

using oriel::Options;
using oriel::ReplyOptions;
using oriel::SessionOptions;

/// "k8v4"
inline std::string formatsText(oriel_kv_format k, oriel_kv_format v) {
  const auto bits = [](oriel_kv_format format) {
    return format == ORIEL_KV_F16 ? "16" : format == ORIEL_KV_INT8 ? "8" : "4";
  };
  if (k == ORIEL_KV_AUTO || v == ORIEL_KV_AUTO) {
    return "auto";
  }
  return k == ORIEL_KV_F16 && v == k ? "f16" : std::string("k") + bits(k) + "v" + bits(v);
}
inline void setFormats(Options* options, oriel_kv_format k, oriel_kv_format v) {
  options->set("kv", formatsText(k, v));
}
inline void setFormats(Options* options, oriel_kv_format both) { setFormats(options, both, both); }

/// The describe calls' spelling.
inline const char* formatName(oriel_kv_format format) {
  return format == ORIEL_KV_F16    ? "f16"
         : format == ORIEL_KV_INT8 ? "int8"
         : format == ORIEL_KV_INT4 ? "int4"
                                   : "auto";
}

/// Null: not given.
template <typename OptionsOf>
void setText(OptionsOf* options, const char* name, const char* text) {
  if (text != nullptr) {
    options->set(name, text);
  }
}

/// "1,2,3"
template <typename List>
std::string listText(const List& values) {
  std::string text;
  for (const auto value : values) {
    text += (text.empty() ? "" : ",") + std::to_string(value);
  }
  return text;
}

struct Bias {
  int32_t id;
  float bias;  ///< -INFINITY: never
};
inline std::string biasText(const Bias& bias) {
  char text[48];
  std::snprintf(text, sizeof(text), "%d:%.9g", bias.id, static_cast<double>(bias.bias));
  return text;
}
/// In addition to existing ones.
inline void addBiases(ReplyOptions* options, const std::vector<Bias>& biases) {
  for (const Bias& bias : biases) {
    options->add("logit_bias", biasText(bias));
  }
}

}  // namespace oriel_internal::test
