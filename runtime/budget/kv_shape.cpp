#include "budget/kv_shape.h"

#include <algorithm>

#include "plan/memory_layout.h"

namespace oriel {
namespace {

/// visit(group, format of the keys, format of the values or null) for every layer.
template <typename Visit>
void forEachLayer(const KvShape& kv, const CacheFormats& formats, const Visit& visit) {
  for (uint32_t layer = 0; layer < kv.layers(); ++layer) {
    visit(kv.groupOf(layer), formats.keys(layer), formats.values(layer));
  }
}

uint64_t tokenBytes(const KvGroup& group, KvFormat k, KvFormat v) {
  return kvSideBytesPerToken(k, group.n_kv_heads, group.head_dim) +
         (group.latent ? 0 : kvSideBytesPerToken(v, group.n_kv_heads, group.head_dim));
}

CacheShape groupCache(const KvGroup& group, const CacheShape& cache) {
  const CacheShape own = {group.n_kv_heads, group.head_dim, cache.sinks, cache.window, cache.ring};
  return group.local_window != 0 ? localShape(own, group.local_window) : own;
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
  const uint32_t local = model.localLayers();
  kv.groups[kv.n_groups++] = {model.n_layers - local, model.n_kv_heads, model.head_dim, 0, false};
  if (local != 0) {
    kv.groups[kv.n_groups++] = {local, model.n_kv_heads, model.head_dim, model.local_window, false};
    std::copy_n(model.local_layers, kMaxLayers / 64, kv.second);
  }
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

uint64_t kvLocalBytesPerToken(const KvShape& kv, const CacheFormats& formats) {
  uint64_t bytes = 0;
  forEachLayer(kv, formats, [&](const KvGroup& group, KvFormat k, KvFormat v) {
    bytes += group.local_window != 0 ? tokenBytes(group, k, v) : 0;
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
