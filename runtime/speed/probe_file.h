// A made-up llama model as the bytes of a GGUF file, so that what is timed goes the way of any model:
// file, plan, executor.
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
  uint32_t tensor_type = 1;  ///< of every matrix, as GGUF numbers it

  /// Weights that every token is multiplied with; the head's n_vocab * n_embd are not counted.
  uint64_t bodyWeights() const {
    const uint64_t queries = uint64_t{n_heads} * head_dim;
    const uint64_t keys = uint64_t{n_kv_heads} * head_dim;
    return n_layers * (n_embd * (2 * queries + 2 * keys) + 3ull * n_embd * n_ff);
  }
};

/// Bytes of the file, which holds one layer whatever n_layers: they share its data. 0 for a type whose size is not known or whose blocks do not divide the rows.
uint64_t probeFileBytes(const ProbeShape& shape);
/// Writes exactly that many. Every number in it is ordinary: neither zero, denormal nor so large that a
/// layer overflows.
void writeProbeFile(const ProbeShape& shape, uint8_t* out);

}  // namespace oriel_internal
