// What layers remember of a session: one memory each, of keys and values or of something else, with its bytes and the
// slots that hold something. Whoever counts, places, saves, clears or draws memories walks forEachMemory.
#pragma once

#include "kv/cache_layout.h"
#include "model/model_desc.h"

namespace oriel_internal {

enum class MemoryKind : uint8_t {
  kKeysValues,  ///< two sides, [heads][slots][head_dim] each, in their formats (sideLayout)
  kLatent,  ///< MLA: one side, one head: the latent, then the rotated key; formats[0] is that of both
  kColumns,  ///< one side: float32 [ring][channels], the inputs of a short convolution
  kState,  ///< one side, [ring][words]: as many versions of a state, each its matrices, then its columns
};

struct Memory {
  MemoryKind kind = MemoryKind::kKeysValues;
  uint32_t layer = 0;  ///< that it belongs to; others may read it
  uint8_t view = 0;    ///< index of ModelDesc::views
  LayerView seen;      ///< that view
  CacheShape shape;    ///< kColumns, kState: one head of so many words
  KvFormat formats[2] = {KvFormat::kF16, KvFormat::kF16};
  StateFormat state = StateFormat::kF32;

  uint32_t sides() const { return kind == MemoryKind::kKeysValues ? 2 : 1; }
  /// Of its tokens those that left the window may come back.
  bool isRecalled() const {
    return !isWords() && seen.kind == ViewKind::kSession && shape.window >= kLeastRecallWindow;
  }
  /// Columns or a state: 32-bit words, not sides in their formats.
  bool isWords() const { return kind == MemoryKind::kColumns || kind == MemoryKind::kState; }
  uint64_t sideBytes(uint32_t side) const {
    return isWords() ? 4ull * shape.ringSlots() * shape.head_dim
                     : sideLayout(formats[side], shape).bytes;
  }
  /// Of all sides, for one more slot.
  uint64_t slotBytes() const;
};

/// Slots of a view in a session of `cache`, and where they lie among those of all sessions; heads are left 0. A window of the layers' own is never longer than what
/// the session sees; every ring has the same slack.
CacheShape viewShape(const LayerView& view, const CacheShape& cache);

/// The memory that a layer owns; of a layer with attention and a state, what attention remembers.
Memory memoryOf(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats,
                uint32_t layer);
/// The state of a layer that keeps one.
Memory stateOf(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats,
               uint32_t layer);

/// visit(const Memory&) for everything that layers own, in the order in which it lies in the cache arena. `cache`
/// gives sinks, window and ring.
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

/// Layers whose memory is rounded to the cache's formats.
inline bool isRounded(const ModelDesc& model, uint32_t layer) {
  return model.ownsMemory(layer) && model.kind(layer).attends();
}

// How published figures count: keys and values of tokens with their scales; no sinks, slack or alignment.

struct MemoryGrowth {
  uint64_t per_token =
      0;  ///< bytes that one more token adds, in layers that see the session's window
  uint64_t sliding_per_token = 0;  ///< and in the others, while their windows are not full
  uint64_t sliding_bytes = 0;      ///< of those when full
  uint64_t fixed_bytes = 0;        ///< of memories that do not grow with tokens
};
MemoryGrowth memoryGrowth(const ModelDesc& model, const CacheFormats& formats);
/// Of one version of all recurrent states.
uint64_t stateBytes(const ModelDesc& model, const CacheFormats& formats);
/// Of so many tokens; fixed_bytes are not among them.
uint64_t memoryBytesAt(const ModelDesc& model, const CacheFormats& formats, uint64_t tokens);

}  // namespace oriel_internal
