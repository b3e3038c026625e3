#include "settings.h"

namespace desktop {
namespace {

/// Of each chat, so that a conversation can be read again where its cache does not fit a new plan.
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

oriel_options libraryOptions(const PlanSettings& settings) {
  oriel_options options = {};
  options.struct_size = sizeof(options);
  options.memory_bytes = settings.memory_bytes;
  options.window_tokens = settings.window_tokens;
  options.k_format = settings.k_format;
  options.v_format = settings.v_format;
  options.device = settings.device;
  options.sessions = settings.chats;
  options.transcript_bytes = kTranscriptBytes;
  if (!settings.system_prompt.empty()) {
    options.system_prompt = settings.system_prompt.data();
    options.system_prompt_bytes = settings.system_prompt.size();
  }
  return options;
}

oriel_generate_options libraryOptions(const ReplySettings& settings) {
  oriel_generate_options options = {};
  options.struct_size = sizeof(options);
  options.greedy = settings.temperature <= 0;
  options.temperature = settings.temperature;
  options.top_k = settings.top_k <= 0 ? UINT32_MAX : static_cast<uint32_t>(settings.top_k);
  options.top_p = settings.top_p <= 0 ? 1e-6f : settings.top_p;
  options.min_p = settings.min_p <= 0 ? -1 : settings.min_p;
  options.repeat_penalty = settings.repeat_penalty;
  options.max_tokens = settings.max_tokens <= 0 ? 0 : static_cast<uint32_t>(settings.max_tokens);
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
