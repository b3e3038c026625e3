#include "plan/memory_layout.h"

#include <algorithm>

#include "plan/weight_layout.h"

namespace oriel {
namespace {

// At most this many workgroups share one head: beyond it merging costs more than it spreads.
constexpr uint32_t kMaxSplits = 32;
// Fewer slots than this are not worth a workgroup of their own.
constexpr uint32_t kMinSplitSlots = 256;
constexpr uint32_t kSplitGranularity = 64;

uint64_t visibleSlots(const CacheShape& cache) {
  return static_cast<uint64_t>(cache.sinks) + cache.window;
}

// At least decodeSplit's splits, and never fewer for a longer window, so that bytes grow with the
// window (the budgeter bisects).
uint64_t mostSplits(const CacheShape& cache) {
  return std::min<uint64_t>(ceilDiv(visibleSlots(cache), kMinSplitSlots), kMaxSplits);
}

}  // namespace

AttentionSplit decodeSplit(const CacheShape& cache) {
  const uint64_t slots = visibleSlots(cache);
  const uint64_t share = alignUp(ceilDiv(slots, kMaxSplits), kSplitGranularity);
  AttentionSplit split;
  split.split_slots = static_cast<uint32_t>(std::max<uint64_t>(share, kMinSplitSlots));
  split.splits = static_cast<uint32_t>(ceilDiv(slots, split.split_slots));
  return split;
}

ActivationLayout layoutActivations(const ModelDesc& model, const CacheShape& cache,
                                   uint32_t chunk) {
  ActivationLayout layout;
  layout.embd_stride = paddedCols(model.n_embd);
  layout.qkv_stride = paddedCols((model.n_heads + 2 * model.n_kv_heads) * model.head_dim);
  layout.query_stride = 2 * model.n_heads * model.head_dim;
  layout.attended_stride = paddedCols(model.n_heads * model.head_dim);
  layout.gate_up_stride = paddedCols(2 * model.n_ff);
  layout.gated_stride = paddedCols(model.n_ff);
  const uint64_t vector = 4ull * chunk;

  PieceCounter kept(ArenaKind::kActivations, 0);
  layout.device_step = kept.take(stepBytes(chunk, rotationWords(model)));
  layout.residual = kept.take(vector * layout.embd_stride);
  layout.normed = kept.take(vector * layout.embd_stride);
  layout.head_normed = kept.take(4ull * layout.embd_stride);
  layout.logits = kept.take(4ull * model.n_vocab);
  layout.top_keys = kept.take(4ull * topBlocks(model.n_vocab));

  PieceCounter attention(ArenaKind::kActivations, kept.used());
  layout.qkv = attention.take(vector * layout.qkv_stride);
  layout.queries = attention.take(vector * layout.query_stride);
  layout.attended = attention.take(vector * layout.attended_stride);
  layout.partials =
      attention.take(4ull * model.n_heads * mostSplits(cache) * (model.head_dim + kPartialExtra));

  PieceCounter feed_forward(ArenaKind::kActivations, kept.used());
  layout.gate_up = feed_forward.take(vector * layout.gate_up_stride);
  layout.gated = feed_forward.take(vector * layout.gated_stride);

  layout.padded = layout.embd_stride != model.n_embd || layout.gated_stride != model.n_ff ||
                  layout.attended_stride != model.n_heads * model.head_dim;
  // The other products' inputs in another form are shorter than what lies there.
  const auto endOfStaged = [&](const BufferRef& piece) {
    const BufferRef staged = layout.stagedAt(piece, layout.embd_stride, chunk);
    return staged.offset_bytes + staged.size_bytes;
  };
  layout.bytes = alignUp(std::max({attention.used(), feed_forward.used(),
                                   endOfStaged(layout.queries), endOfStaged(layout.gated)}),
                         kArenaGranularity);
  return layout;
}

BufferRef ActivationLayout::stagedAt(const BufferRef& piece, uint32_t stride,
                                     uint32_t tokens) const {
  BufferRef staged = piece;
  staged.size_bytes = padded ? 0 : 4ull * kStagedUnitWords * (stride / kUnit) * tokens;
  return staged;
}

IoLayout layoutIo(const ModelDesc& model, uint32_t chunk, uint64_t upload_half) {
  PieceCounter pieces(ArenaKind::kIo, 0);
  IoLayout layout;
  layout.step = pieces.take(stepBytes(chunk, rotationWords(model)));
  layout.step_ahead = pieces.take(4 * stepRotationWord(chunk, rotationWords(model), 1));
  layout.top = pieces.take(sizeof(TopTokens));
  // All logits come to the host this way.
  layout.upload = pieces.take(std::max<uint64_t>(2 * upload_half, 4ull * model.n_vocab));
  layout.upload.size_bytes = 2 * upload_half;
  layout.bytes = alignUp(pieces.used(), kArenaGranularity);
  return layout;
}

bool cacheBytes(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats,
                uint64_t* bytes) {
  PieceCounter pieces(ArenaKind::kCache, 0);
  uint64_t largest = 0;
  for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
    const CacheShape shape = layerShape(model, cache, layer);
    for (const KvFormat format : {formats.keys(layer), formats.values(layer)}) {
      const uint64_t side = sideLayout(format, shape).bytes;
      pieces.take(side);
      largest = std::max(largest, side);
    }
  }
  *bytes = alignUp(pieces.used(), kArenaGranularity);
  return largest <= kMaxBindingBytes;
}

}  // namespace oriel
