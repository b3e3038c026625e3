#include "settings.h"

#include <algorithm>

namespace desktop {
namespace {

/// Per chat, so that a conversation can be read again if its cache does not fit a new plan.
constexpr uint32_t kTranscriptBytes = 128u << 10;

std::string bitsOf(oriel_kv_format format) {
  switch (format) {
    case ORIEL_KV_F16:
      return "16";
    case ORIEL_KV_INT8:
      return "8";
    case ORIEL_KV_INT4:
      return "4";
    default:
      return "?";
  }
}

}  // namespace

oriel::Options libraryOptions(const PlanSettings& settings) {
  oriel::Options options;
  options.memory_bytes = settings.memory_bytes;
  options.window_tokens = settings.window_tokens;
  options.sessions = settings.chats;
  options.set("kv", settings.kv);
  options.set("device", settings.device);
  options.set("transcript", kTranscriptBytes);
  if (!settings.system_prompt.empty()) {
    options.set("system_prompt", settings.system_prompt);
  }
  return options;
}

oriel::ReplyOptions libraryOptions(const ReplySettings& settings) {
  oriel::ReplyOptions options;
  options.set("temperature", settings.temperature);
  options.set("top_k", std::max(settings.top_k, 0));
  options.set("top_p", std::max(settings.top_p, 1e-4f));
  options.set("min_p", std::max(settings.min_p, 0.0f));
  options.set("repeat_penalty", settings.repeat_penalty);
  options.max_tokens = static_cast<uint32_t>(std::max(settings.max_tokens, 0));
  options.seed = static_cast<uint64_t>(settings.seed);
  return options;
}

std::string formatName(oriel_kv_format k, oriel_kv_format v) {
  if (k == ORIEL_KV_AUTO || v == ORIEL_KV_AUTO) {
    return "auto";
  }
  if (k == ORIEL_KV_F16 && v == ORIEL_KV_F16) {
    return "f16";
  }
  return "k" + bitsOf(k) + "v" + bitsOf(v);
}

}  // namespace desktop
