// Where weights, activations and host-visible blocks lie; pure arithmetic shared by the budgeter and
// the plan.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace oriel {

/// Hands out aligned pieces of one arena.
class PieceCounter {
 public:
  PieceCounter(ArenaKind arena, uint64_t begin) : arena_(arena), used_(begin) {}
  BufferRef take(uint64_t bytes) {
    const BufferRef piece = {arena_, 0, used_, bytes};
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

/// Slots of one layer in a session of `cache`.
inline CacheShape layerShape(const ModelDesc& model, const CacheShape& cache, uint32_t layer) {
  return model.isLocal(layer) ? localShape(cache, model.local_window) : cache;
}

/// Words of a token's rotations in the step block.
inline uint32_t rotationWords(const ModelDesc& model) {
  return rotationWords(model.rope_dims, model.local_window != 0);
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
  BufferRef head_normed;  ///< [n_embd]
  BufferRef logits;       ///< [n_vocab]
  BufferRef top_keys;     ///< [topBlocks(n_vocab)]
  // Attention and feed-forward never live at the same time and share their bytes. What one leaves in
  // the padding columns of the other is finite and meets zero weights.
  BufferRef qkv;       ///< [chunk][(n_heads + 2 n_kv_heads) head_dim]
  BufferRef queries;   ///< [chunk][n_heads][2][head_dim]
  BufferRef attended;  ///< [chunk][n_heads head_dim]
  BufferRef partials;  ///< [n_heads][splits][head_dim + kPartialExtra], decode only
  BufferRef gate_up;   ///< [chunk][2 n_ff]
  BufferRef gated;     ///< [chunk][n_ff]
  uint64_t bytes = 0;  ///< of the arena

  uint32_t embd_stride = 0, qkv_stride = 0, query_stride = 0, attended_stride = 0;
  uint32_t gate_up_stride = 0, gated_stride = 0;  ///< words
  bool padded = false;                            ///< some row ends in words that are never written

  /// What kMatmulStaged of a product with rows of `stride` words may be, at a piece that it does not touch and
  /// that `bytes` allows for; of no bytes: nothing.
  BufferRef stagedAt(const BufferRef& piece, uint32_t stride, uint32_t tokens) const;
};
ActivationLayout layoutActivations(const ModelDesc& model, const CacheShape& cache, uint32_t chunk);

/// Host-visible memory.
struct IoLayout {
  BufferRef step, step_ahead, top, upload;
  uint64_t bytes = 0;
};
/// `upload_half` as PlanTotals gives it.
IoLayout layoutIo(const ModelDesc& model, uint32_t chunk, uint64_t upload_half);

/// Cache arena: keys then values, layer by layer. False when one side of a layer exceeds a binding.
bool cacheBytes(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats,
                uint64_t* bytes);

}  // namespace oriel
