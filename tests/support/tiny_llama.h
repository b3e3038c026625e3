// A small, complete llama-architecture file, which tests of refusals damage. Tests only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/gguf_writer.h"

namespace oriel_internal::test {

struct TinyLlama {
  uint32_t n_layers = 2;
  uint32_t n_embd = 32;
  uint32_t n_heads = 4;
  uint32_t n_kv_heads = 2;
  uint32_t n_ff = 64;
  uint32_t n_vocab = 16;
  bool tied_output = true;

  uint32_t headDim() const { return n_embd / n_heads; }

  /// All tensors F32 and zero. No tokenizer.
  GgufWriter writer() const {
    GgufWriter out;
    out.addString("general.architecture", "llama");
    out.addUint32("llama.block_count", n_layers);
    out.addUint32("llama.embedding_length", n_embd);
    out.addUint32("llama.feed_forward_length", n_ff);
    out.addUint32("llama.attention.head_count", n_heads);
    out.addUint32("llama.attention.head_count_kv", n_kv_heads);
    out.addUint32("llama.context_length", 128);
    out.addFloat32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    addMatrix(&out, "token_embd.weight", n_vocab, n_embd);
    addVector(&out, "output_norm.weight");
    if (!tied_output) {
      addMatrix(&out, "output.weight", n_vocab, n_embd);
    }
    for (uint32_t layer = 0; layer < n_layers; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      addVector(&out, prefix + "attn_norm.weight");
      addMatrix(&out, prefix + "attn_q.weight", n_heads * headDim(), n_embd);
      addMatrix(&out, prefix + "attn_k.weight", n_kv_heads * headDim(), n_embd);
      addMatrix(&out, prefix + "attn_v.weight", n_kv_heads * headDim(), n_embd);
      addMatrix(&out, prefix + "attn_output.weight", n_embd, n_heads * headDim());
      addVector(&out, prefix + "ffn_norm.weight");
      addMatrix(&out, prefix + "ffn_gate.weight", n_ff, n_embd);
      addMatrix(&out, prefix + "ffn_up.weight", n_ff, n_embd);
      addMatrix(&out, prefix + "ffn_down.weight", n_embd, n_ff);
    }
    return out;
  }

  static void addMatrix(GgufWriter* out, const std::string& name, uint64_t rows, uint64_t cols) {
    out->addTensor(name, 0, {cols, rows},
                   std::vector<uint8_t>(static_cast<size_t>(rows * cols * 4)));
  }
  void addVector(GgufWriter* out, const std::string& name) const {
    out->addTensor(name, 0, {n_embd}, std::vector<uint8_t>(n_embd * 4));
  }
};

}  // namespace oriel_internal::test
