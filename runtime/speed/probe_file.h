// A synthetic llama model as a GGUF file, so that timings use the normal path: file, plan, executor.
#pragma once

#include <cstdint>

namespace oriel_internal {

struct ProbeShape {
  uint32_t n_layers = 1;
  uint32_t n_embd = 64;
  uint32_t n_heads = 1;
  uint32_t n_kv_heads = 1;
  uint32_t head_dim = 64;
  uint32_t n_ff = 64;
  uint32_t n_vocab = 32;
  uint32_t tensor_type = 1;  ///< of every matrix, GGUF's number

  /// Weights multiplied for every token; excludes the head's n_vocab * n_embd.
  uint64_t bodyWeights() const {
    const uint64_t queries = uint64_t{n_heads} * head_dim;
    const uint64_t keys = uint64_t{n_kv_heads} * head_dim;
    return n_layers * (n_embd * (2 * queries + 2 * keys) + 3ull * n_embd * n_ff);
  }
};

/// Size of the file. All n_layers share one layer's data. 0 if the type's size is unknown or its blocks do not divide
/// the rows.
uint64_t probeFileBytes(const ProbeShape& shape);
/// Writes exactly that many bytes. All numbers are ordinary: not zero, not denormal, and too small to overflow a layer.
void writeProbeFile(const ProbeShape& shape, uint8_t* out);

}  // namespace oriel_internal
