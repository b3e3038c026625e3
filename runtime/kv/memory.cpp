#include "kv/memory.h"

#include <algorithm>

namespace oriel_internal {

uint64_t Memory::slotBytes() const {
  if (isWords()) {
    return 4ull * shape.head_dim;
  }
  uint64_t bytes = 0;
  for (uint32_t side = 0; side < sides(); ++side) {
    bytes += kvSideBytesPerToken(formats[side], shape.n_kv_heads, shape.head_dim);
  }
  return bytes;
}

namespace {

// The shape of one session without its offsets.
CacheShape ownShape(const LayerView& view, const CacheShape& cache) {
  CacheShape shape = cache;
  const uint32_t slack = cache.ring - cache.window;
  shape.n_kv_heads = shape.head_dim = 0;
  switch (view.kind) {
    case ViewKind::kSession:
      shape.window = static_cast<uint32_t>(view.windowOf(cache.window));
      shape.ring = shape.window + slack;
      shape.recalled = shape.window >= kLeastRecallWindow ? cache.recalled : 0;
      break;
    case ViewKind::kSliding:
      shape.sinks = 0;
      shape.window = static_cast<uint32_t>(
          std::min<uint64_t>(view.window, uint64_t{cache.sinkRoom()} + cache.window));
      shape.ring = shape.window + slack;
      break;
    case ViewKind::kColumns:
      shape.sinks = 0;
      shape.window = view.window;
      shape.ring = view.window + slack;
      break;
    case ViewKind::kText:
      shape.sinks = 0;
      break;
    case ViewKind::kState:
      shape.sinks = 0;
      shape.window = 1;
      shape.ring = kStateSlots + cache.stateDrafts() + cache.checkpoints;
      break;
  }
  if (view.kind != ViewKind::kSession) {
    shape.sink_room = shape.all_sinks = shape.first_sink = shape.recalled = 0;
  }
  return shape;
}

}  // namespace

CacheShape viewShape(const LayerView& view, const CacheShape& cache) {
  CacheShape shape = ownShape(view, cache);
  if (cache.sessions == nullptr || view.kind == ViewKind::kText) {
    return shape;
  }
  // Memories without sinks have a slot for the prefix after the sessions.
  const bool has_prefix = cache.sharesSinks() && view.kind != ViewKind::kSession;
  const uint32_t places = cache.sessions->count + (has_prefix ? 1 : 0);
  const uint32_t slack = cache.ring - cache.window;
  shape.all_ring = shape.first_ring = 0;
  uint32_t longest = 0;
  for (uint32_t i = 0; i < places; ++i) {
    CacheShape of = cache;
    of.window = i < cache.sessions->count ? cache.windowOf(i) : longest;
    of.ring = of.window + slack;
    longest = std::max(longest, of.window);
    const uint32_t ring = sessionSlots(ownShape(view, of).ring);
    shape.first_ring += i < cache.session ? ring : 0;
    shape.all_ring += ring;
  }
  return shape;
}

Memory memoryOf(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats,
                uint32_t layer) {
  const LayerKind& kind = model.kind(layer);
  Memory memory;
  memory.layer = layer;
  memory.view = kind.view;
  memory.seen = model.views[kind.view];
  memory.shape = viewShape(memory.seen, cache);
  switch (kind.mixer) {
    case Mixer::kAttention:
    case Mixer::kParallel:
      memory.shape.n_kv_heads = kind.isLatent() ? 1 : kind.n_kv_heads;
      memory.shape.head_dim = kind.isLatent() ? kind.latentCols() : kind.head_dim;
      memory.kind = kind.isLatent() ? MemoryKind::kLatent : MemoryKind::kKeysValues;
      memory.formats[0] = formats.keys(layer);
      memory.formats[1] = formats.values(layer);
      break;
    case Mixer::kShortConv:
      memory.kind = MemoryKind::kColumns;
      memory.shape.n_kv_heads = 1;
      memory.shape.head_dim = model.n_embd;
      break;
    case Mixer::kState:
      return stateOf(model, cache, formats, layer);
    case Mixer::kNone:
      break;
  }
  return memory;
}

Memory stateOf(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats,
               uint32_t layer) {
  const LayerKind& kind = model.kind(layer);
  const StateShape& state = kind.state;
  Memory memory;
  memory.kind = MemoryKind::kState;
  memory.layer = layer;
  memory.view = kind.viewOfState();
  memory.seen = model.views[memory.view];
  memory.shape = viewShape(memory.seen, cache);
  memory.shape.n_kv_heads = 1;
  memory.state = formats.state;
  memory.shape.head_dim =
      state.rule == StateRule::kNone
          ? kind.state_words
          : stateMatrixWords(formats.state, state.heads * state.value_dim, state.key_dim) +
                state.columnWords();
  return memory;
}

namespace {

/// visit(memory, tokens it sees at most), with only what published figures count.
template <typename Visit>
void forEachCounted(const ModelDesc& model, const CacheFormats& formats, const Visit& visit) {
  forEachMemory(model, CacheShape(), formats, visit);
}

}  // namespace

MemoryGrowth memoryGrowth(const ModelDesc& model, const CacheFormats& formats) {
  MemoryGrowth growth;
  uint64_t parts_per_token = 0;
  forEachCounted(model, formats, [&](const Memory& memory) {
    const uint64_t bytes = memory.slotBytes();
    switch (memory.seen.kind) {
      case ViewKind::kSession:
        parts_per_token += bytes * (memory.seen.parts != 0 ? memory.seen.parts : kWindowParts);
        break;
      case ViewKind::kSliding:
        growth.sliding_per_token += bytes;
        growth.sliding_bytes += bytes * memory.seen.window;
        break;
      case ViewKind::kColumns:
        growth.fixed_bytes += bytes * memory.seen.window;
        break;
      case ViewKind::kText:
        parts_per_token = std::max(parts_per_token, bytes * kWindowParts);
        break;
      case ViewKind::kState:
        growth.fixed_bytes += bytes * kStateSlots;
        break;
    }
  });
  growth.per_token = (parts_per_token + kWindowParts - 1) / kWindowParts;
  return growth;
}

uint64_t stateBytes(const ModelDesc& model, const CacheFormats& formats) {
  uint64_t bytes = 0;
  forEachCounted(model, formats, [&](const Memory& memory) {
    bytes += memory.kind == MemoryKind::kState ? memory.slotBytes() : 0;
  });
  return bytes;
}

uint64_t memoryBytesAt(const ModelDesc& model, const CacheFormats& formats, uint64_t tokens) {
  uint64_t bytes = 0;
  forEachCounted(model, formats, [&](const Memory& memory) {
    if (!memory.isWords()) {
      const uint64_t seen = memory.seen.kind == ViewKind::kSliding
                                ? std::min<uint64_t>(tokens, memory.seen.window)
                                : memory.seen.windowOf(tokens);
      bytes += seen * memory.slotBytes();
    }
  });
  return bytes;
}

}  // namespace oriel_internal
