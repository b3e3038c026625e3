// Options as tests set them.
#pragma once

#include <cmath>
#include <memory>
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

// The public API with owners and call helpers, independent of a test framework.

struct FreeModel {
  void operator()(oriel_model* model) const { oriel_model_free(model); }
};
struct DestroySession {
  void operator()(oriel_session* session) const { oriel_session_destroy(session); }
};
using ModelPtr = std::unique_ptr<oriel_model, FreeModel>;
using SessionPtr = std::unique_ptr<oriel_session, DestroySession>;

/// A loaded model with a session.
struct Loaded {
  ModelPtr model;
  SessionPtr session;
};

/// Callback of a generation: collects the ids in `user`, a std::vector<int32_t>.
inline int keepId(const oriel_token_event* event, void* user) {
  static_cast<std::vector<int32_t>*>(user)->push_back(event->id);
  return 0;
}

/// Callback of an evaluation: collects the logits in `user`, a std::vector<std::vector<float>>.
inline int keepRow(size_t, const float* logits, size_t n, void* user) {
  static_cast<std::vector<std::vector<float>>*>(user)->emplace_back(logits, logits + n);
  return 0;
}

/// Always the most likely token, at most `max_tokens` times (0: unlimited), until a stop token.
inline ReplyOptions greedyOptions(uint32_t max_tokens) {
  ReplyOptions options;
  options.max_tokens = max_tokens;
  options.greedy = 1;
  return options;
}

inline oriel_status goBackTo(oriel_session* session, uint64_t position) {
  return oriel_session_go_back(session, ORIEL_BACK_TO_POSITION, position, nullptr, 0);
}

/// `n` reproducible ids below `n_vocab`.
inline std::vector<int32_t> someIds(size_t n, int32_t n_vocab) {
  std::vector<int32_t> ids(n);
  uint32_t state = 12345;
  for (int32_t& id : ids) {
    state = state * 1664525u + 1013904223u;
    id = static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(n_vocab));
  }
  return ids;
}

}  // namespace oriel_internal::test
