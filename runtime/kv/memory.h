// The memories of layers for a session: keys and values, or others, each with its bytes and used slots. Code that
// counts, places, saves, clears or draws memories uses forEachMemory.
#pragma once

#include "kv/cache_layout.h"
#include "model/model_desc.h"

namespace oriel_internal {

enum class MemoryKind : uint8_t {
  kKeysValues,  ///< two sides, [heads][slots][head_dim] each, in their formats (sideLayout)
  kLatent,   ///< MLA: one side, one head: the latent, then the rotated key; formats[0] applies to
             ///< both
  kColumns,  ///< one side: float32 [ring][channels], the inputs of a short convolution
  kState,    ///< one side, [ring][words]: versions of a state, each its matrices, then its columns
};

struct Memory {
  MemoryKind kind = MemoryKind::kKeysValues;
  uint32_t layer = 0;  ///< the owner; others may read it
  uint8_t view = 0;    ///< index of ModelDesc::views
  LayerView seen;      ///< that view
  CacheShape shape;    ///< kColumns, kState: one head of 32-bit words
  KvFormat formats[2] = {KvFormat::kF16, KvFormat::kF16};
  StateFormat state = StateFormat::kF32;

  uint32_t sides() const { return kind == MemoryKind::kKeysValues ? 2 : 1; }
  /// Its evicted tokens may be recalled.
  bool isRecalled() const {
    return !isWords() && seen.kind == ViewKind::kSession && shape.window >= kLeastRecallWindow;
  }
  /// Columns or a state: 32-bit words instead of sides with formats.
  bool isWords() const { return kind == MemoryKind::kColumns || kind == MemoryKind::kState; }
  uint64_t sideBytes(uint32_t side) const {
    return isWords() ? 4ull * shape.ringSlots() * shape.head_dim
                     : sideLayout(formats[side], shape).bytes;
  }
  /// For one slot, all sides.
  uint64_t slotBytes() const;
};

/// Slots of a view in a session of `cache`, and their offsets among all sessions; heads stays 0. A layer's own window is
/// never longer than the session's; every ring has the same slack.
CacheShape viewShape(const LayerView& view, const CacheShape& cache);

/// The memory that a layer owns. For a layer with attention and a state: the attention's memory.
Memory memoryOf(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats,
                uint32_t layer);
/// A layer's state.
Memory stateOf(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats,
               uint32_t layer);

/// visit(const Memory&) for all memories, in the order of the cache arena. `cache` gives sinks, window and ring.
template <typename Visit>
void forEachMemory(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats,
                   const Visit& visit) {
  for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
    if (model.ownsMemory(layer)) {
      visit(memoryOf(model, cache, formats, layer));
      if (model.kind(layer).mixer == Mixer::kParallel) {
        visit(stateOf(model, cache, formats, layer));
      }
    }
  }
}

/// True if the layer's memory is rounded to the cache's formats.
inline bool isRounded(const ModelDesc& model, uint32_t layer) {
  return model.ownsMemory(layer) && model.kind(layer).attends();
}

// Bytes as published figures count them: keys and values of tokens with their scales; no sinks, slack or alignment.

struct MemoryGrowth {
  uint64_t per_token = 0;          ///< bytes per token, in layers that see the session's window
  uint64_t sliding_per_token = 0;  ///< and in the others until their windows are full
  uint64_t sliding_bytes = 0;      ///< of the others when full
  uint64_t fixed_bytes = 0;        ///< memories that do not grow with tokens
};
MemoryGrowth memoryGrowth(const ModelDesc& model, const CacheFormats& formats);
/// Bytes of one version of all recurrent states.
uint64_t stateBytes(const ModelDesc& model, const CacheFormats& formats);
/// Bytes for `tokens` tokens, without fixed_bytes.
uint64_t memoryBytesAt(const ModelDesc& model, const CacheFormats& formats, uint64_t tokens);

}  // namespace oriel_internal
