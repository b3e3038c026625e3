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
enum class Extent : uint8_t { kOne, kEmbedding, kQueries, kKeyValues, kFeedForward, kVocabulary };

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

struct ArchitectureTable {
  Architecture architecture;
  const char* name;  ///< general.architecture
  RopePairing rope_pairing;
  const CountKey* counts;
  uint32_t n_counts;
  const TensorRule* tensors;
  uint32_t n_tensors;
  bool qkv_bias;
  /// Names (as in TensorRule, ends at null) that may be there and carry nothing: derived values that
  /// old converters wrote.
  const char* const* ignored;
};

/// Null when there is no such architecture.
const ArchitectureTable* findArchitecture(const GgufString& name);
const ArchitectureTable& architectureTable(Architecture architecture);
/// Names of all architectures, for messages.
constexpr const char* kSupportedArchitectures = "llama, qwen2";

}  // namespace oriel
