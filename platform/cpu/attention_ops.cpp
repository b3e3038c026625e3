#include "cpu/attention_ops.h"

#include <algorithm>

#include "base/checked.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kPiecesPerThread = 4;   // of storing: a delayed thread takes fewer
constexpr uint32_t kAttentionPieces = 12;  // minimum for attention, for threads to share

/// Pieces of attention: blocks of tokens with one key head and some of the splits.
struct Division {
  uint32_t tokens;  ///< of a block
  uint32_t blocks;
  uint32_t at_once;  ///< splits that go together
  uint32_t shares;   ///< of splits
};

// `tokens`: the maximum that can share loaded keys and values.
Division divide(uint32_t tokens, uint32_t n_tokens, uint32_t n_kv_heads, uint32_t splits) {
  // A piece has as many tokens as can share loaded data, but there are pieces for several threads. The real
  // number of threads must not matter, because the pieces determine the order of additions.
  const uint64_t least = kAttentionPieces;
  Division pieces;
  pieces.tokens = tokens;
  while (pieces.tokens > 1 && ceilDiv(n_tokens, pieces.tokens) * n_kv_heads * splits < least) {
    pieces.tokens = (pieces.tokens + 1) / 2;
  }
  pieces.blocks = static_cast<uint32_t>(ceilDiv(n_tokens, pieces.tokens));
  // With fewer threads than splits, several splits go together, which saves the merge work.
  pieces.at_once = static_cast<uint32_t>(
      std::max<uint64_t>(1, uint64_t{pieces.blocks} * n_kv_heads * splits / (2 * least)));
  pieces.shares = static_cast<uint32_t>(ceilDiv(splits, pieces.at_once));
  return pieces;
}

// `apart`: divide each token as if it were alone.
Division divide(uint32_t tokens, uint32_t n_tokens, bool apart, uint32_t n_kv_heads,
                uint32_t splits) {
  Division pieces = divide(tokens, apart ? 1 : n_tokens, n_kv_heads, splits);
  if (apart) {
    pieces.tokens = 1;
    pieces.blocks = n_tokens;
  }
  return pieces;
}

}  // namespace

template <typename Append, typename Task>
void AttentionOps::append(Append kernel, const Task& task, uint32_t heads, uint32_t n_tokens,
                          uint32_t thread) {
  if (n_tokens > 1) {
    for (uint32_t t = pool_.claim(thread); t < n_tokens; t = pool_.claim(thread)) {
      kernel(task, t, 0, heads);
    }
    return;
  }
  const uint32_t share =
      static_cast<uint32_t>(ceilDiv(heads, uint64_t{pool_.size()} * kPiecesPerThread));
  const uint32_t pieces = static_cast<uint32_t>(ceilDiv(heads, share));
  for (uint32_t piece = pool_.claim(thread); piece < pieces; piece = pool_.claim(thread)) {
    // From the end: storing costs more than rotating.
    const uint32_t last = heads - piece * share;
    kernel(task, 0, last - std::min(share, last), last);
  }
}

void AttentionOps::ropeAppend(const RopeAppendTask& task, uint32_t n_tokens, uint32_t thread) {
  append(rope_append_, task, task.push.n_heads + 2 * task.push.n_kv_heads, n_tokens, thread);
}

void AttentionOps::attention(const AttentionTask& task, uint32_t thread) {
  const AttentionPush& p = task.push;
  const Division of = divide(attentionTokens(p.n_heads / p.n_kv_heads, p.head_dim), task.n_tokens,
                             task.apart, p.n_kv_heads, p.splits);
  const uint32_t pieces = of.blocks * p.n_kv_heads * of.shares;
  for (uint32_t piece = pool_.claim(thread); piece < pieces; piece = pool_.claim(thread)) {
    const uint32_t split = piece % of.shares * of.at_once;
    const uint32_t head = piece / of.shares % p.n_kv_heads;
    const uint32_t first = piece / of.shares / p.n_kv_heads * of.tokens;
    attend_(task, head, first, std::min(of.tokens, task.n_tokens - first), split,
            std::min(of.at_once, p.splits - split));
  }
}

void AttentionOps::latentAppend(const LatentAppendTask& task, uint32_t n_tokens, uint32_t thread) {
  append(latent_append_, task, task.push.n_heads + 1, n_tokens, thread);
}

// Divided as attention of one key head is.
void AttentionOps::latentAttention(const LatentAttentionTask& task, bool apart, uint32_t thread) {
  const LatentAttentionPush& p = task.push;
  const Division of = divide(latentTokens(p), task.n_tokens, apart, 1, p.splits);
  const uint32_t pieces = of.blocks * of.shares;
  for (uint32_t piece = pool_.claim(thread); piece < pieces; piece = pool_.claim(thread)) {
    const uint32_t split = piece % of.shares * of.at_once;
    const uint32_t first = piece / of.shares * of.tokens;
    attend_latents_(task, first, std::min(of.tokens, task.n_tokens - first), split,
                    std::min(of.at_once, p.splits - split));
  }
}

void AttentionOps::hadamard(const HadamardPush& p, float* rows, uint32_t n_tokens,
                            uint32_t thread) {
  for (uint32_t i = pool_.claim(thread); i < n_tokens * p.rows; i = pool_.claim(thread)) {
    hadamard_(p, rows + uint64_t{i / p.rows} * p.stride + i % p.rows * p.cols);
  }
}

}  // namespace oriel_internal
