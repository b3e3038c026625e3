// The user's choices: model, memory and sampling.
#pragma once

#include <cstdint>
#include <string>

#include <oriel/oriel.hpp>

namespace desktop {

/// A change needs a reload of the model.
struct PlanSettings {
  std::string model_path;
  uint64_t memory_bytes = 0;  ///< 0: half of the system's free memory
  uint32_t chats = 4;         ///< number of chats in the plan
  uint32_t window_tokens = 0;
  std::string kv = "auto";      ///< the option "kv"
  std::string device = "auto";  ///< the option "device"
  std::string system_prompt;    ///< shared by all chats
};

inline bool operator==(const PlanSettings& a, const PlanSettings& b) {
  return a.model_path == b.model_path && a.memory_bytes == b.memory_bytes && a.chats == b.chats &&
         a.window_tokens == b.window_tokens && a.kv == b.kv && a.device == b.device &&
         a.system_prompt == b.system_prompt;
}
inline bool operator!=(const PlanSettings& a, const PlanSettings& b) { return !(a == b); }

/// The library's options for them.
oriel::Options libraryOptions(const PlanSettings& settings);

struct ReplySettings {
  float temperature = 0.7f;
  int top_k = 40;
  float top_p = 0.95f;
  float min_p = 0.05f;
  float repeat_penalty = 1.0f;
  int max_tokens = 512;
  int seed = 0;  ///< 0: from the clock
};

oriel::ReplyOptions libraryOptions(const ReplySettings& settings);

/// "k8v4", "f16".
std::string formatName(oriel_kv_format k, oriel_kv_format v);

}  // namespace desktop
