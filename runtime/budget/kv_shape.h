// What a model's layers remember, as a description: enough to count the bytes of any cache, also of
// architectures that no kernel here runs.
#pragma once

#include <cstdint>

#include "kv/cache_layout.h"
#include "model/model_desc.h"

namespace oriel {

/// Layers with caches of one shape. MHA has as many KV heads as query heads, GQA fewer, MQA one.
struct KvGroup {
  uint32_t n_layers = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  /// Queries of these layers see at most so many tokens and no sinks. 0: what the session keeps.
  uint32_t local_window = 0;
  /// MLA: a token is one vector of head_dim values that stands for its key and its value, in f16.
  bool latent = false;
};

/// Layers that read another layer's cache are in no group and are not counted.
struct KvShape {
  KvGroup groups[2];
  uint32_t n_groups = 0;
  uint64_t second[kMaxLayers / 64] = {};  ///< layers that belong to groups[1]

  uint32_t layers() const;
  const KvGroup& groupOf(uint32_t layer) const {
    return groups[second[layer / 64] >> (layer % 64) & 1];
  }
  bool latent() const { return n_groups != 0 && groups[0].latent; }
};

/// One group; two where some layers are local.
KvShape kvShapeOf(const ModelDesc& model);

/// Cache arena with alignment and slack: of a model's own shape what the plan takes. False
/// when one side of a layer exceeds a binding. `cache` gives sinks, window and ring.
bool kvArenaBytes(const KvShape& kv, const CacheShape& cache, const CacheFormats& formats,
                  uint64_t* bytes);

/// Keys and values of `tokens` tokens with their scales: no sinks, slack or alignment, which is how
/// published figures count.
uint64_t kvBytesAt(const KvShape& kv, const CacheFormats& formats, uint64_t tokens);
/// What one more token adds once every local window is full.
uint64_t kvGrowthBytesPerToken(const KvShape& kv, const CacheFormats& formats);
/// What one more token adds to the layers with a local window while it is not full.
uint64_t kvLocalBytesPerToken(const KvShape& kv, const CacheFormats& formats);
/// What the local windows hold when full: kvBytesAt(n) = growth * n + local from there on.
uint64_t kvLocalBytes(const KvShape& kv, const CacheFormats& formats);

}  // namespace oriel
