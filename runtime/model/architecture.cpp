#include "model/architecture.h"

#include "base/limits.h"

namespace oriel {
namespace {

template <typename T, uint32_t N>
constexpr uint32_t countOf(const T (&)[N]) {
  return N;
}

// The shared vocabulary of decoder-only transformers.
constexpr CountKey kCounts[] = {
    {"block_count", &ModelDesc::n_layers, 1, kMaxLayers, true},
    {"embedding_length", &ModelDesc::n_embd, 1, kMaxEmbedding, true},
    {"feed_forward_length", &ModelDesc::n_ff, 1, kMaxFeedForward, true},
    {"attention.head_count", &ModelDesc::n_heads, 1, kMaxHeads, true},
    {"attention.head_count_kv", &ModelDesc::n_kv_heads, 1, kMaxHeads, false},
    {"attention.key_length", &ModelDesc::head_dim, kMinHeadDim, kMaxHeadDim, false},
    {"rope.dimension_count", &ModelDesc::rope_dims, 2, kMaxHeadDim, false},
    {"context_length", &ModelDesc::context_train, 0, UINT32_MAX, false},
    {"vocab_size", &ModelDesc::n_vocab, 1, kMaxVocabulary, false},
};

// clang-format off
// What every layer of every architecture has; each adds its own.
#define ORIEL_FRAME_TENSORS \
    {TensorRole::kTokenEmbedding, "token_embd.weight", false, Extent::kVocabulary, \
     Extent::kEmbedding, true}, \
    {TensorRole::kOutputNorm, "output_norm.weight", false, Extent::kOne, Extent::kEmbedding, true}, \
    {TensorRole::kOutput, "output.weight", false, Extent::kVocabulary, Extent::kEmbedding, false}, \
    {TensorRole::kRopeFactors, "rope_freqs.weight", false, Extent::kOne, Extent::kRopePairs, \
     false}, \
    {TensorRole::kAttentionNorm, "attn_norm.weight", true, Extent::kOne, Extent::kEmbedding, true}, \
    {TensorRole::kAttentionOut, "attn_output.weight", true, Extent::kEmbedding, Extent::kQueries, \
     true}, \
    {TensorRole::kFeedForwardNorm, "ffn_norm.weight", true, Extent::kOne, Extent::kEmbedding, true}, \
    {TensorRole::kDown, "ffn_down.weight", true, Extent::kEmbedding, Extent::kFeedForward, true},

#define ORIEL_LLAMA_TENSORS \
    ORIEL_FRAME_TENSORS \
    {TensorRole::kQuery, "attn_q.weight", true, Extent::kQueries, Extent::kEmbedding, true}, \
    {TensorRole::kKey, "attn_k.weight", true, Extent::kKeyValues, Extent::kEmbedding, true}, \
    {TensorRole::kValue, "attn_v.weight", true, Extent::kKeyValues, Extent::kEmbedding, true}, \
    {TensorRole::kGate, "ffn_gate.weight", true, Extent::kFeedForward, Extent::kEmbedding, true}, \
    {TensorRole::kUp, "ffn_up.weight", true, Extent::kFeedForward, Extent::kEmbedding, true},

// One norm for all heads, before RoPE.
#define ORIEL_HEAD_NORMS \
    {TensorRole::kQueryNorm, "attn_q_norm.weight", true, Extent::kOne, Extent::kHead, true}, \
    {TensorRole::kKeyNorm, "attn_k_norm.weight", true, Extent::kOne, Extent::kHead, true},

// Llama 1 to 3, Mistral, SmolLM 1 and 2, TinyLlama, and most that were converted to look like them.
constexpr TensorRule kLlamaTensors[] = {ORIEL_LLAMA_TENSORS};

constexpr TensorRule kQwen2Tensors[] = {
    ORIEL_LLAMA_TENSORS
    {TensorRole::kQueryBias, "attn_q.bias", true, Extent::kOne, Extent::kQueries, true},
    {TensorRole::kKeyBias, "attn_k.bias", true, Extent::kOne, Extent::kKeyValues, true},
    {TensorRole::kValueBias, "attn_v.bias", true, Extent::kOne, Extent::kKeyValues, true},
};

constexpr TensorRule kQwen3Tensors[] = {ORIEL_LLAMA_TENSORS ORIEL_HEAD_NORMS};

// Norm weights come with the 1 that Gemma adds to them.
constexpr TensorRule kGemma3Tensors[] = {
    ORIEL_LLAMA_TENSORS ORIEL_HEAD_NORMS
    {TensorRole::kAttentionPostNorm, "post_attention_norm.weight", true, Extent::kOne,
     Extent::kEmbedding, true},
    {TensorRole::kFeedForwardPostNorm, "post_ffw_norm.weight", true, Extent::kOne,
     Extent::kEmbedding, true},
};
// clang-format on
constexpr Quirks gemma3Quirks() {
  Quirks quirks;
  quirks.gelu = true;
  quirks.scaled_embedding = true;
  quirks.local_period = 6;
  quirks.local_rope_theta = 10000.0;
  quirks.width_scaled_layers = 62;  // 27B; all others have scores scaled by the head as usual
  return quirks;
}

constexpr Quirks smolLm3Quirks() {
  Quirks quirks;
  quirks.no_rope_period = 4;
  return quirks;
}

// clang-format off
constexpr TensorRule kPhi3Tensors[] = {
    ORIEL_FRAME_TENSORS
    {TensorRole::kQkv, "attn_qkv.weight", true, Extent::kQkv, Extent::kEmbedding, true},
    {TensorRole::kGateUp, "ffn_up.weight", true, Extent::kGateUp, Extent::kEmbedding, true},
    {TensorRole::kRopeFactorsLong, "rope_factors_long.weight", false, Extent::kOne,
     Extent::kRopePairs, false},
    {TensorRole::kRopeFactorsShort, "rope_factors_short.weight", false, Extent::kOne,
     Extent::kRopePairs, false},
};
// clang-format on

#undef ORIEL_FRAME_TENSORS
#undef ORIEL_LLAMA_TENSORS
#undef ORIEL_HEAD_NORMS

// The rotation's inverse frequencies, which rope.freq_base gives anyway.
constexpr const char* kIgnored[] = {"attn_rot_embd.weight", nullptr};

template <uint32_t N>
constexpr ArchitectureTable table(Architecture architecture, const char* name, RopePairing pairing,
                                  const TensorRule (&tensors)[N], const Quirks& quirks = Quirks()) {
  static_assert(N <= kMaxTensorRules, "raise kMaxTensorRules");
  return {architecture, name, pairing, kCounts, countOf(kCounts), tensors, N, kIgnored, quirks};
}

constexpr ArchitectureTable kArchitectures[] = {
    table(Architecture::kLlama, "llama", RopePairing::kInterleaved, kLlamaTensors),
    table(Architecture::kQwen2, "qwen2", RopePairing::kHalves, kQwen2Tensors),
    table(Architecture::kQwen3, "qwen3", RopePairing::kHalves, kQwen3Tensors),
    table(Architecture::kGemma3, "gemma3", RopePairing::kHalves, kGemma3Tensors, gemma3Quirks()),
    table(Architecture::kSmolLm3, "smollm3", RopePairing::kInterleaved, kLlamaTensors,
          smolLm3Quirks()),
    table(Architecture::kPhi3, "phi3", RopePairing::kHalves, kPhi3Tensors),
};

}  // namespace

const ArchitectureTable* findArchitecture(const GgufString& name) {
  for (const ArchitectureTable& found : kArchitectures) {
    if (name.equals(found.name)) {
      return &found;
    }
  }
  return nullptr;
}

const ArchitectureTable& architectureTable(Architecture architecture) {
  for (const ArchitectureTable& found : kArchitectures) {
    if (found.architecture == architecture) {
      return found;
    }
  }
  return kArchitectures[0];
}

const char* architectureName(Architecture architecture) {
  return architectureTable(architecture).name;
}

}  // namespace oriel
