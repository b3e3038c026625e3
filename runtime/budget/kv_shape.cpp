#include "budget/kv_shape.h"

#include <algorithm>

#include "plan/memory_layout.h"

namespace oriel {
namespace {

/// visit(group, format of the keys, format of the values or null) for every layer.
template <typename Visit>
void forEachLayer(const KvShape& kv, const CacheFormats& formats, const Visit& visit) {
  uint32_t layer = 0;
  for (uint32_t g = 0; g < kv.n_groups; ++g) {
    for (uint32_t i = 0; i < kv.groups[g].n_layers; ++i, ++layer) {
      visit(kv.groups[g], formats.keys(layer), formats.values(layer));
    }
  }
}

uint64_t tokenBytes(const KvGroup& group, KvFormat k, KvFormat v) {
  return kvSideBytesPerToken(k, group.n_kv_heads, group.head_dim) +
         (group.latent ? 0 : kvSideBytesPerToken(v, group.n_kv_heads, group.head_dim));
}

// A local layer forgets its first tokens like all others, so its sinks would never be seen.
CacheShape groupCache(const KvGroup& group, const CacheShape& cache) {
  CacheShape own = {group.n_kv_heads, group.head_dim, cache.sinks, cache.window, cache.ring};
  const uint64_t visible = static_cast<uint64_t>(cache.sinks) + cache.window;
  if (group.local_window != 0) {
    const uint32_t slack = cache.ring - cache.window;
    own.sinks = 0;
    own.window = static_cast<uint32_t>(std::min<uint64_t>(group.local_window, visible));
    own.ring = own.window + slack;
  }
  return own;
}

}  // namespace

uint32_t KvShape::layers() const {
  uint32_t total = 0;
  for (uint32_t g = 0; g < n_groups; ++g) {
    total += groups[g].n_layers;
  }
  return total;
}

KvShape kvShapeOf(const ModelDesc& model) {
  KvShape kv;
  kv.groups[kv.n_groups++] = {model.n_layers, model.n_kv_heads, model.head_dim, 0, false};
  return kv;
}

bool kvArenaBytes(const KvShape& kv, const CacheShape& cache, const CacheFormats& formats,
                  uint64_t* bytes) {
  PieceCounter pieces(ArenaKind::kCache, 0);
  uint64_t largest = 0;
  const auto take = [&](uint64_t side) {
    pieces.take(side);
    largest = std::max(largest, side);
  };
  forEachLayer(kv, formats, [&](const KvGroup& group, KvFormat k, KvFormat v) {
    const CacheShape own = groupCache(group, cache);
    take(sideLayout(k, own).bytes);
    if (!group.latent) {
      take(sideLayout(v, own).bytes);
    }
  });
  *bytes = alignUp(pieces.used(), kArenaGranularity);
  return largest <= kMaxBindingBytes;
}

uint64_t kvBytesAt(const KvShape& kv, const CacheFormats& formats, uint64_t tokens) {
  uint64_t bytes = 0;
  forEachLayer(kv, formats, [&](const KvGroup& group, KvFormat k, KvFormat v) {
    const uint64_t seen =
        group.local_window != 0 ? std::min<uint64_t>(tokens, group.local_window) : tokens;
    bytes += seen * tokenBytes(group, k, v);
  });
  return bytes;
}

uint64_t kvGrowthBytesPerToken(const KvShape& kv, const CacheFormats& formats) {
  uint64_t bytes = 0;
  forEachLayer(kv, formats, [&](const KvGroup& group, KvFormat k, KvFormat v) {
    bytes += group.local_window != 0 ? 0 : tokenBytes(group, k, v);
  });
  return bytes;
}

uint64_t kvLocalBytes(const KvShape& kv, const CacheFormats& formats) {
  uint64_t bytes = 0;
  forEachLayer(kv, formats, [&](const KvGroup& group, KvFormat k, KvFormat v) {
    bytes += group.local_window * tokenBytes(group, k, v);
  });
  return bytes;
}

}  // namespace oriel
