// What a model is: its shape as plain numbers, and the tensors its architecture expects.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/limits.h"
#include "base/log.h"
#include "gguf/gguf.h"

namespace oriel {

enum class Architecture : uint32_t { kLlama, kQwen2, kQwen3, kGemma3, kSmolLm3, kPhi3 };

/// Which values of a head a rotation pairs up.
enum class RopePairing : uint32_t {
  kInterleaved,  ///< (2i, 2i + 1): llama as converted for GGUF
  kHalves,       ///< (i, i + rope_dims / 2)
};

/// How positions turn into angles: pair i of a head turns by theta^(-2i / rope_dims) / divisors[i] a
/// token, and what was turned is multiplied by `magnitude`. Every known scaling of RoPE is one of these.
struct RopeTable {
  RopeTable() { std::fill(divisors, divisors + kMaxHeadDim / 2, 1.0); }
  double theta = 10000.0;
  double magnitude = 1.0;
  double divisors[kMaxHeadDim / 2];  ///< positive and finite
};

enum class RopeScaling : uint32_t {
  kNone,
  kLinear,    ///< positions divided by a factor
  kFactors,   ///< a divisor for each pair, from a tensor (Llama 3)
  kYarn,      ///< Peng et al. 2023: interpolates slow pairs only
  kLongrope,  ///< Ding et al. 2024: two sets of divisors, for short and for long contexts
};
const char* ropeScalingName(
    RopeScaling scaling);  ///< "none", "linear", "llama3", "yarn", "longrope"

/// Shape of a decoder-only transformer. Everything the budgeter and the plan need, nothing from the
/// device. All counts are within base/limits.h once readModelDesc has returned kOk.
struct ModelDesc {
  Architecture architecture = Architecture::kLlama;
  uint32_t n_layers = 0;
  uint32_t n_embd = 0;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;  ///< divides n_heads
  uint32_t head_dim = 0;    ///< even, kMinHeadDim .. kMaxHeadDim
  uint32_t n_ff = 0;
  uint32_t n_vocab = 0;
  uint32_t context_train = 0;  ///< tokens; 0: not stated
  uint32_t rope_dims = 0;      ///< even, <= head_dim
  RopePairing rope_pairing = RopePairing::kInterleaved;
  RopeScaling rope_scaling = RopeScaling::kNone;
  RopeTable rope;
  /// Used instead of `rope` when a cache may hold more than so many tokens; 0: never.
  uint32_t rope_short_tokens = 0;
  RopeTable rope_long;
  RopeTable rope_local;         ///< of local layers
  uint32_t no_rope_period = 0;  ///< every so many layers one has no RoPE, the last of them; 0: none

  /// Layers that see at most local_window tokens, themselves included, and no sinks.
  uint32_t local_window = 0;  ///< 0: there are none
  uint64_t local_layers[kMaxLayers / 64] = {};
  /// Every layer was trained to see at most so many tokens; 0: as many as the context has.
  uint32_t window_train = 0;

  float rms_eps = 1e-5f;
  float attention_scale = 0;  ///< of scores
  float embedding_scale = 1.0f;
  bool gelu = false;         ///< feed-forward gate: GELU (tanh form); else SiLU
  bool tied_output = false;  ///< the output matrix is the embedding

  bool isLocal(uint32_t layer) const {
    return local_window != 0 && (local_layers[layer / 64] >> (layer % 64) & 1) != 0;
  }
  uint32_t localLayers() const {
    uint32_t count = 0;
    for (uint32_t layer = 0; layer < n_layers; ++layer) {
      count += isLocal(layer) ? 1 : 0;
    }
    return count;
  }
  uint32_t ropeDims(uint32_t layer) const {
    return no_rope_period != 0 && (layer + 1) % no_rope_period == 0 ? 0 : rope_dims;
  }
  /// The table of layers that are not local in a cache of so many tokens.
  const RopeTable& ropeFor(uint64_t visible_tokens) const {
    return rope_short_tokens != 0 && visible_tokens > rope_short_tokens ? rope_long : rope;
  }
  /// Tokens that a query was trained to see; 0: not stated.
  uint32_t visibleTrain() const {
    return window_train != 0 && (context_train == 0 || window_train < context_train)
               ? window_train
               : context_train;
  }
};

enum class TensorRole : uint32_t {
  kTokenEmbedding,       // [n_vocab][n_embd]
  kOutputNorm,           // [n_embd]
  kOutput,               // [n_vocab][n_embd]; absent when tied
  kAttentionNorm,        // [n_embd]
  kQuery,                // [n_heads * head_dim][n_embd]
  kKey,                  // [n_kv_heads * head_dim][n_embd]
  kValue,                // [n_kv_heads * head_dim][n_embd]
  kAttentionOut,         // [n_embd][n_heads * head_dim]
  kFeedForwardNorm,      // [n_embd]
  kGate,                 // [n_ff][n_embd]
  kUp,                   // [n_ff][n_embd]
  kDown,                 // [n_embd][n_ff]
  kQueryBias,            // [n_heads * head_dim]
  kKeyBias,              // [n_kv_heads * head_dim]
  kValueBias,            // [n_kv_heads * head_dim]
  kQkv,                  // [(n_heads + 2 n_kv_heads) * head_dim][n_embd]: query, key, value stacked
  kGateUp,               // [2 n_ff][n_embd]: gate, up stacked
  kQueryNorm,            // [head_dim], of every head
  kKeyNorm,              // [head_dim]
  kAttentionPostNorm,    // [n_embd], of what attention adds to the residual
  kFeedForwardPostNorm,  // [n_embd]
  kRopeFactors,          // [rope_dims / 2]
  kRopeFactorsLong,      // [rope_dims / 2]
  kRopeFactorsShort,     // [rope_dims / 2]
};

/// Reads and checks the hyperparameters and every tensor the architecture's table expects: present,
/// of the right shape, of a type this build can run. `file` must already be validated (GgufFile::open).
/// Also refuses tensors the table does not know (they would be silently ignored otherwise), except
/// ones every llama file may carry and that carry no information (see the .cpp).
Status readModelDesc(const GgufFile& file, const Log& log, ModelDesc* desc);

/// The tensor that plays `role` in `layer` (ignored for roles outside the layers). Call only after
/// readModelDesc said kOk; asking for kOutput of a tied model gives the embedding.
GgufTensor findTensor(const GgufFile& file, const ModelDesc& desc, TensorRole role, uint32_t layer);

/// Whether models of this architecture have such a tensor (in every layer, for roles of layers).
bool hasTensor(const ModelDesc& desc, TensorRole role);

/// "llama"; a NUL-terminated constant.
const char* architectureName(Architecture architecture);

}  // namespace oriel
