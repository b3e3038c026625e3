#include "cpu/ops.h"

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

namespace {

constexpr uint32_t kInputTokens = 16;     // of a piece, which share taps
constexpr uint32_t kOneTokenPieces = 4;   // for each thread
constexpr uint32_t kOneTokenRows = 8192;  // values of a state in a piece

uint32_t ceilOf(uint32_t value, uint32_t by) { return static_cast<uint32_t>(ceilDiv(value, by)); }

}  // namespace

void StateOps::inputs(const StateInputsTask& task, uint32_t thread) {
  const uint32_t parts = stateInputParts(task.push);
  if (task.n_tokens == 1) {
    const uint32_t share = ceilOf(parts, kOneTokenPieces * pool_.size());
    for (uint32_t at = pool_.claim(thread); at < ceilOf(parts, share); at = pool_.claim(thread)) {
      kernels_.inputs(task, at * share, std::min(parts, (at + 1) * share), 0, 1);
    }
    return;
  }
  const uint32_t pieces = ceilOf(task.n_tokens, kInputTokens);
  for (uint32_t at = pool_.claim(thread); at < pieces; at = pool_.claim(thread)) {
    kernels_.inputs(task, 0, parts, at * kInputTokens,
                    std::min(task.n_tokens, (at + 1) * kInputTokens));
  }
}

StateOps::ScanPieces StateOps::scanPieces(const StateScanPush& p, uint32_t n_tokens) {
  const uint32_t most =
      n_tokens == 1 ? std::max(kOneTokenRows / p.key_dim, 1u) : mostScanRows(p.key_dim);
  const uint32_t of_a_head = ceilOf(p.value_dim, most);
  return {of_a_head, static_cast<uint32_t>(alignUp(ceilOf(p.value_dim, of_a_head), kGroupRows)),
          p.heads * of_a_head};
}

void StateOps::scanPiece(const StateScanTask& task, const ScanPieces& pieces,
                         uint32_t index) const {
  const uint32_t value_dim = task.push.value_dim;
  const uint32_t first = index % pieces.of_a_head * pieces.rows;
  if (first < value_dim) {
    kernels_.scan(task, index / pieces.of_a_head, first, std::min(pieces.rows, value_dim - first));
  }
}

void StateOps::scan(const StateScanTask& task, uint32_t thread) {
  const ScanPieces pieces = scanPieces(task.push, task.n_tokens);
  for (uint32_t at = pool_.claim(thread); at < pieces.count; at = pool_.claim(thread)) {
    scanPiece(task, pieces, at);
  }
}

}  // namespace oriel_internal
