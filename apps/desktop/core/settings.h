// What a person chooses: the model and its memory, and how replies are drawn from it.
#pragma once

#include <cstdint>
#include <string>

#include <oriel/oriel.hpp>

namespace desktop {

/// Changes to these need the model to be loaded again.
struct PlanSettings {
  std::string model_path;
  uint64_t memory_bytes = 0;  ///< 0: half of what the system has free
  uint32_t chats = 4;         ///< conversations that there is memory for
  uint32_t window_tokens = 0;
  std::string kv = "auto";      ///< the cache's formats, as the option "kv"
  std::string device = "auto";  ///< as the option "device"
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
  int seed = 0;  ///< 0: taken from the clock
};

oriel::ReplyOptions libraryOptions(const ReplySettings& settings);

/// "k8v4", "f16".
std::string formatName(oriel_kv_format k, oriel_kv_format v);

}  // namespace desktop
