// What a model is: its shape as plain numbers, and the tensors its architecture expects.
#pragma once

#include <cstdint>

#include "base/log.h"
#include "gguf/gguf.h"

namespace oriel {

enum class Architecture : uint32_t { kLlama, kQwen2 };

/// Which values of a head a rotation pairs up.
enum class RopePairing : uint32_t {
  kInterleaved,  ///< (2i, 2i + 1): llama as converted for GGUF
  kHalves,       ///< (i, i + rope_dims / 2)
};

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
  double rope_theta = 10000.0;
  float rms_eps = 1e-5f;
  bool tied_output = false;  ///< the output matrix is the embedding
  bool qkv_bias = false;     ///< queries, keys and values have biases
};

enum class TensorRole : uint32_t {
  kTokenEmbedding,  // [n_vocab][n_embd]
  kOutputNorm,      // [n_embd]
  kOutput,          // [n_vocab][n_embd]; absent when tied
  kAttentionNorm,   // [n_embd]
  kQuery,           // [n_heads * head_dim][n_embd]
  kKey,             // [n_kv_heads * head_dim][n_embd]
  kValue,           // [n_kv_heads * head_dim][n_embd]
  kAttentionOut,    // [n_embd][n_heads * head_dim]
  kFeedForwardNorm, // [n_embd]
  kGate,            // [n_ff][n_embd]
  kUp,              // [n_ff][n_embd]
  kDown,            // [n_embd][n_ff]
  kQueryBias,       // [n_heads * head_dim]
  kKeyBias,         // [n_kv_heads * head_dim]
  kValueBias,       // [n_kv_heads * head_dim]
};

/// Reads and checks the hyperparameters and every tensor the architecture's table expects: present,
/// of the right shape, of a type this build can run. `file` must already be validated (GgufFile::open).
/// Also refuses tensors the table does not know (they would be silently ignored otherwise), except
/// ones every llama file may carry and that carry no information (see the .cpp).
Status readModelDesc(const GgufFile& file, const Log& log, ModelDesc* desc);

/// The tensor that plays `role` in `layer` (ignored for roles outside the layers). Call only after
/// readModelDesc said kOk; asking for kOutput of a tied model gives the embedding.
GgufTensor findTensor(const GgufFile& file, const ModelDesc& desc, TensorRole role, uint32_t layer);

/// "llama"; a NUL-terminated constant.
const char* architectureName(Architecture architecture);

}  // namespace oriel
