// Where weights, activations and host-visible blocks lie; pure arithmetic shared by the budgeter and
// the plan.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kv/memory.h"
#include "plan/plan.h"

namespace oriel_internal {

/// Hands out aligned pieces of one arena. Those of the cache lie in segments of kMaxAllocationBytes, none in two.
class PieceCounter {
 public:
  PieceCounter(ArenaKind arena, uint64_t begin) : arena_(arena), used_(begin) {}
  BufferRef take(uint64_t bytes) {
    const bool has_segments = arena_ == ArenaKind::kCache;
    if (has_segments && used_ % kMaxAllocationBytes + bytes > kMaxAllocationBytes) {
      used_ = alignUp(used_, kMaxAllocationBytes);
    }
    const uint64_t segment = has_segments ? used_ / kMaxAllocationBytes : 0;
    const BufferRef piece = {arena_, static_cast<uint8_t>(segment),
                             used_ - segment * kMaxAllocationBytes, bytes};
    used_ = alignUp(used_ + bytes, kBufferAlignment);
    return piece;
  }
  uint64_t used() const { return used_; }

 private:
  ArenaKind arena_;
  uint64_t used_;
};

/// Hands out aligned pieces of the weights arena, segment after segment.
class WeightSegments {
 public:
  /// `segment_bytes`: where the segments' sizes go; null: nowhere.
  explicit WeightSegments(uint64_t* segment_bytes = nullptr) : segment_bytes_(segment_bytes) {}

  BufferRef take(uint64_t bytes) {
    if (alignUp(used_ + bytes, kArenaGranularity) > kMaxAllocationBytes) {
      close();
    }
    const BufferRef piece = {ArenaKind::kWeights, static_cast<uint8_t>(count_), used_, bytes};
    used_ = alignUp(used_ + bytes, kBufferAlignment);
    return piece;
  }
  /// After the last piece.
  void close() {
    if (used_ == 0) {
      return;
    }
    const uint64_t bytes = alignUp(used_, kArenaGranularity);
    if (segment_bytes_ != nullptr) {
      segment_bytes_[count_] = bytes;
    }
    ++count_;
    bytes_ += bytes;
    used_ = 0;
  }
  /// Of the segments that are closed.
  uint32_t count() const { return count_; }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t* segment_bytes_;
  uint32_t count_ = 0;
  uint64_t bytes_ = 0;
  uint64_t used_ = 0;  // of the segment that is open
};

/// A token's rotations in the step block, each a table of RopeTable::dims words: where they begin, in words.
struct RotationTables {
  struct Of {
    uint32_t keys = 0;     ///< at the token's position
    uint32_t queries = 0;  ///< likewise; the same table unless queries have a temperature
    uint32_t sinks =
        0;  ///< of queries that score sink keys; in layers without sinks that of queries
  };
  Of ropes[kMaxRopes];
  uint32_t gates = 0;  ///< where gates of adapters begin
  uint32_t words = 0;  ///< of all tables and gates of a token
};
RotationTables rotationTables(const ModelDesc& model);

/// Bytes of a step block.
inline uint64_t stepBytes(const ModelDesc& model, uint32_t tokens_before, uint32_t tokens) {
  const uint32_t words = rotationTables(model).words;
  return 4 * stepRotationWord(tokens_before, model.n_views, words, tokens);
}

/// Slots of attention work per workgroup and how many workgroups share a head when decoding.
struct AttentionSplit {
  uint32_t splits = 1;
  uint32_t split_slots = 1;
};
AttentionSplit decodeSplit(const CacheShape& cache);

/// Blocks that so many logits are divided into.
constexpr uint32_t topBlocks(uint32_t n_vocab) {
  return n_vocab < kMaxTopBlocks ? n_vocab : kMaxTopBlocks;
}

/// Vectors between kernels, all float32, [chunk][stride words].
struct ActivationLayout {
  BufferRef device_step;
  BufferRef residual;     ///< [chunk][n_embd]
  BufferRef normed;       ///< [chunk][n_embd]
  BufferRef head_normed;  ///< [chunk][n_embd]: where normed is
  BufferRef head_staged;  ///< another form of those rows, as kMatmulStaged; of no bytes: none
  BufferRef logits;  ///< [output_rows][n_vocab]: rows but the first lie where a body's vectors do
  BufferRef dense;   ///< [output_rows][ModelDesc::dense]
  BufferRef kept_logits;  ///< [sessions][n_vocab]; of one session: the first row of logits
  BufferRef top_keys;     ///< [batch_rows][topBlocks(n_vocab)]
  // Attention and feed-forward never live at the same time and share their bytes. What one leaves in
  // the padding columns of the other is finite and meets zero weights.
  BufferRef qkv;       ///< [chunk][(n_heads + 2 n_kv_heads) head_dim]
  BufferRef queries;   ///< [chunk][n_heads][2][head_dim]
  BufferRef attended;  ///< [chunk][n_heads head_dim]
  BufferRef partials;  ///< [batch_rows][n_heads][splits][head_dim + kPartialExtra], decode only
  // Latent attention, where attention is. What is behind the last head of a row is read as far as a unit reaches.
  BufferRef compressed;      ///< [chunk][query_latent_dim + latent_dim + rope_dim]
  BufferRef query_heads;     ///< [chunk][n_heads head_dim]
  BufferRef latent_queries;  ///< [chunk][n_heads][latent_dim + 2 rope_dim]
  BufferRef sums;          ///< [chunk][n_heads][latent_dim]: where compressed and query_heads were
  BufferRef conv;          ///< [chunk][3 n_embd]: where qkv is
  BufferRef convolved;     ///< [chunk][n_embd]: where attended is
  BufferRef layer_inputs;  ///< [chunk]: layer by layer, then what layer_input values are made in
  BufferRef scores;        ///< [chunk][experts]
  BufferRef gates;         ///< [chunk][gates of latent attention]
  BufferRef beside;        ///< [chunk][n_embd]: where LayerKind::hasBranches()
  BufferRef branch;        ///< likewise
  BufferRef routes;        ///< as RoutePush says; of no bytes where IoLayout has them
  BufferRef expert_gate_up;  ///< [routes][2 expert n_ff]
  BufferRef expert_gated;    ///< [routes][expert n_ff]
  BufferRef expert_out;      ///< [routes][n_embd]
  BufferRef state_in;     ///< [chunk]: channels and gates, before their convolution; where qkv is
  BufferRef state_mixed;  ///< [chunk]: as StateInputsPush says; then state_out, gated
  BufferRef state_out;    ///< [chunk][heads * value_dim]
  // A model that guesses has one token at a time. Beside these it uses pieces of the body and of a batch's heads.
  BufferRef draft_in;        ///< [2 n_embd]: an embedding, then a vector behind the last norm
  BufferRef draft_residual;  ///< [its n_embd]
  BufferRef draft_normed;    ///< [its n_embd]
  BufferRef draft_logits;    ///< [n_vocab]: where the second row of logits is
  // Of adapters' pairs: what A gives, and that times its gate. Segments of several pairs, kThinColumns apart. Of experts
  // `thin` is [routes][thin_expert_stride].
  BufferRef thin;            ///< [chunk][thin_stride]
  BufferRef thin_gated;      ///< likewise
  BufferRef gate_up;         ///< [chunk][2 n_ff]
  BufferRef gated;           ///< [chunk][n_ff]
  uint64_t bytes = 0;        ///< of the arena
  uint32_t output_rows = 1;  ///< of logits that a head can make at once

  uint32_t embd_stride = 0, qkv_stride = 0, query_stride = 0, attended_stride = 0;
  uint32_t conv_stride = 0, gate_up_stride = 0, gated_stride = 0;
  uint32_t layer_inputs_stride = 0, scores_stride = 0;
  uint32_t state_in_stride = 0, state_mixed_stride = 0, state_out_stride = 0;
  uint32_t draft_in_stride = 0, draft_stride = 0, dense_stride = 0;
  uint32_t compressed_stride = 0, query_heads_stride = 0, sums_stride = 0, gates_stride = 0;
  uint32_t expert_gate_up_stride = 0, expert_gated_stride = 0;  ///< words
  uint32_t thin_stride = 0, thin_expert_stride = 0;
  bool padded = false;  ///< some row ends in words that are never written

  /// What kMatmulStaged of a product with rows of `stride` words may be, at a piece that it does not touch and
  /// that `bytes` allows for; of no bytes: nothing.
  BufferRef stagedAt(const BufferRef& piece, uint32_t stride, uint32_t tokens) const;
};
ActivationLayout layoutActivations(const ModelDesc& model, const CacheShape& cache, uint32_t chunk,
                                   const OnFile& on_file = OnFile());

/// The largest mixture of experts among the layers.
struct ExpertLimits {
  uint32_t count = 0;
  uint32_t used = 0;
  uint32_t n_ff = 0;
};
ExpertLimits expertLimits(const ModelDesc& model);
/// Words of a buffer of routes.
constexpr uint64_t routeWords(uint32_t routes, uint32_t n_experts) {
  return uint64_t{kRouteParts} * routes + n_experts + 1;
}

/// Host-visible memory.
struct IoLayout {
  BufferRef step, step_ahead, top, upload;
  BufferRef file_rows;      ///< of RowsOnFile
  BufferRef routes, slots;  ///< of experts on file
  uint64_t bytes = 0;
};
/// `upload_half` as PlanTotals gives it. `tops`: places for best tokens; a model that guesses has one more.
IoLayout layoutIo(const ModelDesc& model, uint32_t chunk, uint64_t upload_half,
                  const OnFile& on_file = OnFile(), uint32_t tops = 1);

/// Cache arena: memory by memory, side by side. False when one side exceeds a binding.
bool cacheBytes(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats,
                uint64_t* bytes);

/// The cache arena's segments, one after the other.
inline uint32_t cacheSegments(uint64_t cache_bytes) {
  return static_cast<uint32_t>(ceilDiv(cache_bytes, kMaxAllocationBytes));
}
inline BufferRef cacheSegment(uint64_t cache_bytes, uint32_t segment) {
  const uint64_t begin = segment * kMaxAllocationBytes;
  return {ArenaKind::kCache, static_cast<uint8_t>(segment), 0,
          std::min(cache_bytes - begin, kMaxAllocationBytes)};
}
/// Where a piece begins in its arena, but for weights.
inline uint64_t arenaOffset(const BufferRef& piece) {
  return piece.segment * kMaxAllocationBytes + piece.offset_bytes;
}

/// Of a cache whose sessions share their sinks: what those, and what other memories keep of a prefix, take.
uint64_t prefixBytes(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats);

/// visit(const Memory&, const BufferRef (&sides)[2]) for every memory of a session, at its place in the arena.
template <typename Visit>
void forEachPlacedMemory(const ModelDesc& model, const CacheShape& cache,
                         const CacheFormats& formats, const Visit& visit) {
  PieceCounter pieces(ArenaKind::kCache, 0);
  forEachMemory(model, cache, formats, [&](const Memory& memory) {
    if (model.encoder) {  // nothing is kept between steps: layers take turns
      pieces = PieceCounter(ArenaKind::kCache, 0);
    }
    BufferRef sides[2];
    for (uint32_t side = 0; side < memory.sides(); ++side) {
      sides[side] = pieces.take(memory.sideBytes(side));
    }
    visit(memory, sides);
  });
}

}  // namespace oriel_internal
