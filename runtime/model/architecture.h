// Architectures as data: which keys give a model's numbers and which tensors it is made of. Adding an
// architecture means adding a table; model_desc.cpp reads all of them the same way.
#pragma once

#include <cstdint>

#include "model/model_desc.h"

namespace oriel {

/// A whole number in the metadata, "<architecture>.<suffix>".
struct CountKey {
  const char* suffix;
  uint32_t ModelDesc::*field;
  uint32_t minimum;
  uint32_t maximum;
  bool
      required;  ///< otherwise the field stays 0 when the key is missing and is derived from others
};

/// Rows or columns of a tensor, in terms of the model's numbers.
enum class Extent : uint8_t {
  kOne,
  kEmbedding,
  kHead,       ///< head_dim
  kQueries,    ///< n_heads * head_dim
  kKeyValues,  ///< n_kv_heads * head_dim
  kQkv,        ///< queries, keys and values
  kFeedForward,
  kGateUp,  ///< 2 n_ff
  kVocabulary,
  kRopePairs,  ///< rope_dims / 2
};

struct TensorRule {
  TensorRole role;
  const char* name;  ///< in layers: what follows "blk.N."
  bool in_layers;    ///< one per layer
  Extent rows;       ///< kOne: a vector
  Extent cols;
  bool required;
};

/// Bounds the table of tensors, so that a reader can count on the stack.
constexpr uint32_t kMaxTensorRules = 64;

/// What an architecture does that its files do not say.
struct Quirks {
  bool gelu = false;              ///< GELU instead of SiLU in the feed-forward
  bool scaled_embedding = false;  ///< embeddings times sqrt(n_embd)
  uint32_t no_rope_period = 0;    ///< ModelDesc::no_rope_period
  /// One layer of so many is global, the last of them, the others are local, unless the file has a
  /// pattern of its own. 0: no local layers; then a sliding window in the file is one of all layers.
  uint32_t local_period = 0;
  double local_rope_theta = 0;  ///< of local layers, unless the file says otherwise
  /// Models of so many layers scale scores by 1 / sqrt(n_embd / n_heads). 0: none.
  uint32_t width_scaled_layers = 0;
};

struct ArchitectureTable {
  Architecture architecture;
  const char* name;  ///< general.architecture
  RopePairing rope_pairing;
  const CountKey* counts;
  uint32_t n_counts;
  const TensorRule* tensors;
  uint32_t n_tensors;
  /// Names (as in TensorRule, ends at null) that may be there and carry nothing: derived values that
  /// old converters wrote.
  const char* const* ignored;
  Quirks quirks;
};

/// Null when there is no such architecture.
const ArchitectureTable* findArchitecture(const GgufString& name);
const ArchitectureTable& architectureTable(Architecture architecture);
/// Names of all architectures, for messages.
constexpr const char* kSupportedArchitectures = "llama, qwen2, qwen3, gemma3, smollm3, phi3";

}  // namespace oriel
