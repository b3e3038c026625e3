#include "model/architecture.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "model/keys.h"

namespace oriel_internal {
namespace {

constexpr const char* kExperts = "a mixture of experts";
constexpr const char* kStateSpace = "state-space or recurrent layers";
constexpr const char* kLatent = "multi-head latent attention";
constexpr const char* kMedia = "images or sound";
constexpr const char* kEncoder = "an encoder";
constexpr const char* kSoftCaps = "soft caps on logits";
constexpr const char* kTable = "a table of its tensors";
constexpr const char* kPositions = "position biases";

struct Needed {
  const char* text;
  const char* what;
};

// clang-format off
// By general.architecture; names of GGUF converters.
constexpr Needed kArchitectures[] = {
    {"phimoe", kExperts},        {"dbrx", kExperts},         {"grok", kExperts},
    {"llama4", kExperts},        {"arctic", kExperts},       {"dots1", kExperts},
    {"minimax-m2", kExperts},    {"mamba", kStateSpace},
    {"rwkv6", kStateSpace},      {"rwkv6qwen2", kStateSpace},
    {"rwkv7", kStateSpace},      {"arwkv7", kStateSpace},    {"jamba", kStateSpace},
    {"plamo2", kStateSpace},
    {"clip", kMedia},            {"mllama", kMedia},
    {"wavtokenizer-dec", kMedia}, {"t5", kEncoder},          {"t5encoder", kEncoder},
    {"gemma3n", "nested layers that share caches"},
    {"gptj", kTable},            {"bloom", kPositions},      {"mpt", kPositions},
    {"starcoder", kTable},       {"command-r", kTable},
};
// clang-format on

// By part of a tensor's name.
constexpr Needed kTensors[] = {
    {"_exps.", "belongs to a mixture of experts"},
    {"_shexp.", "belongs to a mixture of experts"},
    {"ffn_gate_inp", "belongs to a mixture of experts"},
    {".ssm_", "belongs to a state-space layer"},
    {".time_mix_", "belongs to a recurrent layer"},
    {".shortconv", "belongs to a short convolution"},
    {"attn_q_a", "belongs to multi-head latent attention"},
    {"attn_kv_a", "belongs to multi-head latent attention"},
    {"attn_kv_b", "belongs to multi-head latent attention"},
    {"attn_sinks", "holds learned attention sinks"},
    {"cross_attn", "belongs to cross attention, for images or sound"},
    {"v.blk.", "belongs to an image encoder"},
    {"mm.", "belongs to a projection of images or sound"},
    {"position_embd", "is an embedding of positions"},
    {"rope_factors_", "holds frequency factors of scaled RoPE"},
    {"rope_freqs", "holds frequency factors of scaled RoPE"},
    {"_norm.weight", "is a norm"},
    {".bias", "is a bias"},
};

// Keys that are present and not zero.
constexpr Needed kKeys[] = {
    {"expert_count", kExperts},
    {"ssm.state_size", kStateSpace},
    {"ssm.conv_kernel", kStateSpace},
    {"attention.kv_lora_rank", kLatent},
    {"attention.q_lora_rank", kLatent},
    {"attn_logit_softcapping", kSoftCaps},
    {"final_logit_softcapping", kSoftCaps},
    {"attention.max_alibi_bias", kPositions},
    {"attention.clamp_kqv", "clamped queries and keys"},
    {"attention.shared_kv_layers", "layers that share caches"},
    {"logit_scale", "scaled logits"},
    {"residual_scale", "scaled residuals"},
    {"embedding_scale", "scaled embeddings of its own"},
    {"swiglu_clamp_exp", "clamped experts"},
    {"swiglu_clamp_shexp", "clamped experts"},
};

bool contains(const GgufString& text, const char* part) {
  const size_t length = std::strlen(part);
  for (uint64_t at = 0; at + length <= text.bytes; ++at) {
    if (std::memcmp(text.data + at, part, length) == 0) {
      return true;
    }
  }
  return false;
}

/// "mixture of experts" and the like for architectures known not to run; null for others.
const char* missingFor(const GgufString& architecture) {
  for (const Needed& known : kArchitectures) {
    if (architecture.equals(known.text)) {
      return known.what;
    }
  }
  return contains(architecture, "moe") ? kExperts : nullptr;
}

/// True if the architecture reads the key or ignores it on purpose.
bool reads(const Traits& traits, const char* suffix) {
  struct Read {
    const char* suffix;
    bool known;
  };
  for (const Read& read :
       {Read{"attn_logit_softcapping", traits.score_cap != 0},
        Read{"final_logit_softcapping", traits.logit_cap != 0},
        Read{"ssm.state_size", traits.hybrid_keys || traits.state != StateRule::kNone},
        Read{"ssm.conv_kernel", traits.hybrid_keys || traits.state != StateRule::kNone},
        Read{"expert_count", traits.experts},
        Read{"attention.kv_lora_rank", traits.latent_attention},
        Read{"attention.q_lora_rank", traits.latent_attention},
        Read{"attention.shared_kv_layers", traits.shared_memories},
        Read{"attention.clamp_kqv", traits.qkv_limit},
        Read{"logit_scale", traits.scales || traits.logit_factor},
        Read{"residual_scale", traits.scales}, Read{"embedding_scale", traits.scales}}) {
    if (read.known && std::strcmp(read.suffix, suffix) == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

Status refuseArchitecture(const GgufString& name, const Log& log) {
  // Lists as many as fit.
  constexpr size_t kLongestEnd = 48;
  char runs[kMaxMessageBytes / 2] = "";
  size_t at = 0;
  uint32_t left = 0;
  for (uint32_t i = 0; i < architectureCount(); ++i) {
    left += architectureAt(i).traits.drafts ? 0 : 1;
  }
  for (uint32_t i = 0; i < architectureCount(); ++i) {
    if (architectureAt(i).traits.drafts) {
      continue;
    }
    const bool last = at + kLongestEnd > sizeof(runs);
    const int n = last ? std::snprintf(runs + at, sizeof(runs) - at, " and %" PRIu32 " more", left)
                       : std::snprintf(runs + at, sizeof(runs) - at, "%s%s", i == 0 ? "" : ", ",
                                       architectureAt(i).name);
    at += n > 0 ? static_cast<size_t>(n) : 0;
    --left;
    if (last) {
      break;
    }
  }
  const char* const missing = missingFor(name);
  return log.fail(ORIEL_ERROR_UNSUPPORTED,
                  "architecture \"%s\" %s%s%s: use a model of one of these: %s",
                  PrintableText(name).text, missing != nullptr ? "needs " : "is not supported",
                  missing != nullptr ? missing : "",
                  missing != nullptr ? ", which this build does not have" : "", runs);
}

const char* unknownTensorPurpose(const GgufString& name) {
  for (const Needed& known : kTensors) {
    if (contains(name, known.text)) {
      return known.what;
    }
  }
  return "is not part of the architecture as known here";
}

Status refuseVariants(const GgufFile& file, const Architecture& architecture, const Log& log) {
  for (const Needed& needed : kKeys) {
    const KeyName key(architecture, needed.text);
    uint64_t count = 0;
    double value = 0;
    GgufArray list;
    if (file.getArray(key.text, &list)) {
      GgufArrayReader reader(list);
      for (float of = 0; value == 0 && reader.nextFloat(&of);) {
        value = static_cast<double>(of);
      }
    } else if (file.getUint(key.text, &count)) {
      value = static_cast<double>(count);
    } else if (!file.getFloat(key.text, &value)) {
      continue;
    }
    if (value != 0 && !reads(architecture.traits, needed.text)) {
      return log.fail(ORIEL_ERROR_UNSUPPORTED,
                      "%s is %g: the model needs %s, which this build does not have: use another "
                      "model",
                      key.text, value, needed.what);
    }
  }
  return kOk;
}

}  // namespace oriel_internal
