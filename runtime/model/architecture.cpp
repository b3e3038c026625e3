#include "model/architecture.h"

#include "base/limits.h"

namespace oriel {
namespace {

template <typename T, uint32_t N>
constexpr uint32_t countOf(const T (&)[N]) {
  return N;
}

// The shared vocabulary of decoder-only transformers.
constexpr CountKey kLlamaCounts[] = {
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

// What every layer of this family has; each architecture adds its own.
#define ORIEL_LLAMA_TENSORS \
    {TensorRole::kTokenEmbedding, "token_embd.weight", false, Extent::kVocabulary, \
     Extent::kEmbedding, true}, \
    {TensorRole::kOutputNorm, "output_norm.weight", false, Extent::kOne, Extent::kEmbedding, true}, \
    {TensorRole::kOutput, "output.weight", false, Extent::kVocabulary, Extent::kEmbedding, false}, \
    {TensorRole::kAttentionNorm, "attn_norm.weight", true, Extent::kOne, Extent::kEmbedding, true}, \
    {TensorRole::kQuery, "attn_q.weight", true, Extent::kQueries, Extent::kEmbedding, true}, \
    {TensorRole::kKey, "attn_k.weight", true, Extent::kKeyValues, Extent::kEmbedding, true}, \
    {TensorRole::kValue, "attn_v.weight", true, Extent::kKeyValues, Extent::kEmbedding, true}, \
    {TensorRole::kAttentionOut, "attn_output.weight", true, Extent::kEmbedding, Extent::kQueries, \
     true}, \
    {TensorRole::kFeedForwardNorm, "ffn_norm.weight", true, Extent::kOne, Extent::kEmbedding, true}, \
    {TensorRole::kGate, "ffn_gate.weight", true, Extent::kFeedForward, Extent::kEmbedding, true}, \
    {TensorRole::kUp, "ffn_up.weight", true, Extent::kFeedForward, Extent::kEmbedding, true}, \
    {TensorRole::kDown, "ffn_down.weight", true, Extent::kEmbedding, Extent::kFeedForward, true},

constexpr TensorRule kLlamaTensors[] = {ORIEL_LLAMA_TENSORS};

constexpr TensorRule kQwen2Tensors[] = {
    ORIEL_LLAMA_TENSORS
    {TensorRole::kQueryBias, "attn_q.bias", true, Extent::kOne, Extent::kQueries, true},
    {TensorRole::kKeyBias, "attn_k.bias", true, Extent::kOne, Extent::kKeyValues, true},
    {TensorRole::kValueBias, "attn_v.bias", true, Extent::kOne, Extent::kKeyValues, true},
};

static_assert(countOf(kQwen2Tensors) <= kMaxTensorRules, "raise kMaxTensorRules");

// The rotation's inverse frequencies, which rope_theta gives anyway.
constexpr const char* kLlamaIgnored[] = {"attn_rot_embd.weight", nullptr};

constexpr ArchitectureTable kArchitectures[] = {
    {Architecture::kLlama, "llama", RopePairing::kInterleaved, kLlamaCounts, countOf(kLlamaCounts),
     kLlamaTensors, countOf(kLlamaTensors), false, kLlamaIgnored},
    {Architecture::kQwen2, "qwen2", RopePairing::kHalves, kLlamaCounts, countOf(kLlamaCounts),
     kQwen2Tensors, countOf(kQwen2Tensors), true, kLlamaIgnored},
};

}  // namespace

const ArchitectureTable* findArchitecture(const GgufString& name) {
  for (const ArchitectureTable& table : kArchitectures) {
    if (name.equals(table.name)) {
      return &table;
    }
  }
  return nullptr;
}

const ArchitectureTable& architectureTable(Architecture architecture) {
  for (const ArchitectureTable& table : kArchitectures) {
    if (table.architecture == architecture) {
      return table;
    }
  }
  return kArchitectures[0];
}

const char* architectureName(Architecture architecture) {
  return architectureTable(architecture).name;
}

}  // namespace oriel
