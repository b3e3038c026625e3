// Places of weights, activations and host-visible blocks. Pure arithmetic, shared by the budgeter and the plan.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kv/memory.h"
#include "plan/plan.h"

namespace oriel_internal {

/// Returns aligned pieces of one arena. Pieces of the cache are in segments of kMaxAllocationBytes and never cross a
/// segment border.
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

/// Returns aligned pieces of the weights arena, segment after segment.
class WeightSegments {
 public:
  /// `segment_bytes` receives the sizes of the segments; may be null.
  explicit WeightSegments(uint64_t* segment_bytes = nullptr) : segment_bytes_(segment_bytes) {}

  BufferRef take(uint64_t bytes) {
    if (alignUp(used_ + bytes, kArenaGranularity) > kMaxAllocationBytes) {
      close();
    }
    const BufferRef piece = {ArenaKind::kWeights, static_cast<uint8_t>(count_), used_, bytes};
    used_ = alignUp(used_ + bytes, kBufferAlignment);
    return piece;
  }
  /// Call after the last piece.
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
  /// Closed segments only.
  uint32_t count() const { return count_; }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t* segment_bytes_;
  uint32_t count_ = 0;
  uint64_t bytes_ = 0;
  uint64_t used_ = 0;  // bytes of the open segment
};

/// A token's rotations in the step block. Each is a table of RopeTable::dims words; the members are word offsets.
struct RotationTables {
  struct Of {
    uint32_t keys = 0;  ///< at the token's position
    /// at the same position; the same table as keys unless queries have a temperature
    uint32_t queries = 0;
    uint32_t sinks =
        0;  ///< for queries that score sink keys; equal to `queries` in layers without sinks
  };
  Of ropes[kMaxRopes];
  uint32_t gates = 0;  ///< offset of the adapters' gates
  uint32_t words = 0;  ///< size of all tables and gates of a token
};
RotationTables rotationTables(const ModelDesc& model);

/// Bytes of a step block.
inline uint64_t stepBytes(const ModelDesc& model, uint32_t tokens_before, uint32_t tokens) {
  const uint32_t words = rotationTables(model).words;
  return 4 * stepRotationWord(tokens_before, model.n_views, words, tokens);
}

/// Slots per workgroup, and workgroups per head, for attention when decoding.
struct AttentionSplit {
  uint32_t splits = 1;
  uint32_t split_slots = 1;
};
AttentionSplit decodeSplit(const CacheShape& cache);

/// Number of blocks that `n_vocab` logits are divided into.
constexpr uint32_t topBlocks(uint32_t n_vocab) {
  return n_vocab < kMaxTopBlocks ? n_vocab : kMaxTopBlocks;
}

/// Rows of ActivationLayout::hidden: vectors that a prediction block reads.
struct HiddenRows {
  static constexpr uint32_t kBefore = 0;  ///< the vector before the latest step's first token
  static constexpr uint32_t kFirst = 1;   ///< and after its tokens, row by row
  uint32_t chunk = 1;
  uint32_t zeros() const { return kFirst + chunk; }
  uint32_t guess() const { return zeros() + 1; }  ///< the block's own vector, for its next guess
  uint32_t count() const { return guess() + 1; }
};

/// Keys and values of a prediction block, in f16: the slots of the session's view. They are outside the cache.
Memory predictionMemory(const ModelDesc& model, const CacheShape& cache);

/// Vectors between kernels, all float32: [chunk][stride words].
struct ActivationLayout {
  BufferRef device_step;
  BufferRef residual;     ///< [chunk][n_embd]
  BufferRef normed;       ///< [chunk][n_embd]
  BufferRef head_normed;  ///< [chunk][n_embd]: same place as normed
  BufferRef head_staged;  ///< another form of those rows, as kMatmulStaged; zero bytes: none
  /// [output_rows][n_vocab]: rows except the first share the place of a body's vectors
  BufferRef logits;
  BufferRef dense;        ///< [output_rows][ModelDesc::dense]
  BufferRef kept_logits;  ///< [sessions][n_vocab]; with one session: the first row of logits
  BufferRef top_keys;     ///< [batch_rows][topBlocks(n_vocab)]
  // Attention and feed-forward never run at the same time and share their bytes. Each may leave finite values in the
  // padding columns of the other, where the weights are zero.
  BufferRef qkv;       ///< [chunk][(n_heads + 2 n_kv_heads) head_dim]
  BufferRef queries;   ///< [chunk][n_heads][2][head_dim]
  BufferRef attended;  ///< [chunk][n_heads head_dim]
  BufferRef partials;  ///< [batch_rows][n_heads][splits][head_dim + kPartialExtra], decode only
  // Latent attention, at the place of attention. Kernels read beyond the last head of a row, up to a whole unit.
  BufferRef compressed;      ///< [chunk][query_latent_dim + latent_dim + rope_dim]
  BufferRef query_heads;     ///< [chunk][n_heads head_dim]
  BufferRef latent_queries;  ///< [chunk][n_heads][latent_dim + 2 rope_dim]
  BufferRef sums;       ///< [chunk][n_heads][latent_dim]: same place as compressed and query_heads
  BufferRef conv;       ///< [chunk][3 n_embd]: same place as qkv
  BufferRef convolved;  ///< [chunk][n_embd]: same place as attended
  BufferRef layer_inputs;  ///< [chunk]: layer by layer, then working memory for layer_input values
  BufferRef scores;        ///< [chunk][experts]
  BufferRef gates;         ///< [chunk][gates of latent attention]
  BufferRef beside;        ///< [chunk][n_embd]: if LayerKind::hasBranches()
  BufferRef branch;        ///< the same
  BufferRef routes;        ///< as in RoutePush; zero bytes if IoLayout has them
  BufferRef expert_gate_up;  ///< [routes][2 expert n_ff]
  BufferRef expert_gated;    ///< [routes][expert n_ff]
  BufferRef expert_out;      ///< [routes][n_embd]
  BufferRef state_in;  ///< [chunk]: channels and gates, before their convolution; same place as qkv
  BufferRef state_mixed;  ///< [chunk]: as in StateInputsPush; then state_out, gated
  BufferRef state_out;    ///< [chunk][heads * value_dim]
  // A draft model has one token at a time. It also uses pieces of the body and of a batch's heads. A prediction block
  // reads all tokens.
  BufferRef draft_in;        ///< [2 n_embd]: an embedding, then a vector after the last norm
  BufferRef draft_residual;  ///< [its n_embd]
  BufferRef draft_normed;    ///< [its n_embd]; not for a prediction block
  // For a prediction block; both keep their contents between steps.
  BufferRef hidden;               ///< [HiddenRows::count()][n_embd]
  BufferRef prediction_sides[2];  ///< as in predictionMemory()
  BufferRef draft_logits;         ///< [n_vocab]: same place as the second row of logits
  // The adapters' products: A's output, and that times its gate. Segments of several pairs, kThinColumns apart. For
  // experts `thin` is [routes][thin_expert_stride].
  BufferRef thin;            ///< [chunk][thin_stride]
  BufferRef thin_gated;      ///< the same
  BufferRef gate_up;         ///< [chunk][2 n_ff]
  BufferRef gated;           ///< [chunk][n_ff]
  uint64_t bytes = 0;        ///< size of the arena
  uint32_t output_rows = 1;  ///< rows of logits per head

  uint32_t embd_stride = 0, qkv_stride = 0, query_stride = 0, attended_stride = 0;
  uint32_t conv_stride = 0, gate_up_stride = 0, gated_stride = 0;
  uint32_t layer_inputs_stride = 0, scores_stride = 0;
  uint32_t state_in_stride = 0, state_mixed_stride = 0, state_out_stride = 0;
  uint32_t draft_in_stride = 0, draft_stride = 0, dense_stride = 0, hidden_stride = 0;
  uint32_t compressed_stride = 0, query_heads_stride = 0, sums_stride = 0, gates_stride = 0;
  uint32_t expert_gate_up_stride = 0, expert_gated_stride = 0;  ///< words
  uint32_t thin_stride = 0, thin_expert_stride = 0;
  bool padded = false;  ///< some rows end in words that are never written

  /// Memory for kMatmulStaged of a product with rows of `stride` words. It is at a piece that the product does not
  /// touch, within its bytes; zero bytes: no room.
  BufferRef stagedAt(const BufferRef& piece, uint32_t stride, uint32_t tokens) const;
};
ActivationLayout layoutActivations(const ModelDesc& model, const CacheShape& cache, uint32_t chunk,
                                   const OnFile& on_file = OnFile());

/// The largest mixture of experts of all layers.
struct ExpertLimits {
  uint32_t count = 0;
  uint32_t used = 0;
  uint32_t n_ff = 0;
};
ExpertLimits expertLimits(const ModelDesc& model);
/// Size of a buffer of routes, in words.
constexpr uint64_t routeWords(uint32_t routes, uint32_t n_experts) {
  return uint64_t{kRouteParts} * routes + n_experts + 1;
}

/// Host-visible memory.
struct IoLayout {
  BufferRef step, step_ahead, top, upload;
  BufferRef file_rows;      ///< for RowsOnFile
  BufferRef picture_rows;   ///< Plan::picture_rows
  BufferRef routes, slots;  ///< for experts on file
  uint64_t bytes = 0;
};
/// Bytes of one part of a batch's picture rows, a slice of kF32 rows.
uint64_t picturePartBytes(const ModelDesc& model, uint32_t chunk);
/// `upload_half`: as in PlanTotals. `tops`: places for best tokens; a draft model adds one.
IoLayout layoutIo(const ModelDesc& model, uint32_t chunk, uint64_t upload_half,
                  const OnFile& on_file = OnFile(), uint32_t tops = 1);

/// Bytes of the cache arena: memory by memory, with its sides in order. False if a side exceeds the largest binding.
bool cacheBytes(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats,
                uint64_t* bytes);

/// The number of segments in the cache arena, and each segment.
inline uint32_t cacheSegments(uint64_t cache_bytes) {
  return static_cast<uint32_t>(ceilDiv(cache_bytes, kMaxAllocationBytes));
}
inline BufferRef cacheSegment(uint64_t cache_bytes, uint32_t segment) {
  const uint64_t begin = segment * kMaxAllocationBytes;
  return {ArenaKind::kCache, static_cast<uint8_t>(segment), 0,
          std::min(cache_bytes - begin, kMaxAllocationBytes)};
}
/// Offset of a piece in its arena. Not for weights.
inline uint64_t arenaOffset(const BufferRef& piece) {
  return piece.segment * kMaxAllocationBytes + piece.offset_bytes;
}

/// For a cache with shared sinks: bytes of the sinks and of other memories' parts of a prefix.
uint64_t prefixBytes(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats);

/// Calls visit(const Memory&, const BufferRef (&sides)[2]) for every memory of a session, with its place in the arena.
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
