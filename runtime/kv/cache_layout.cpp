#include "kv/cache_layout.h"

#include <algorithm>

namespace oriel_internal {

const char* kvFormatName(KvFormat format) {
  switch (format) {
    case KvFormat::kF16:
      return "f16";
    case KvFormat::kInt8:
      return "int8";
    case KvFormat::kInt4:
      return "int4";
  }
  return "?";
}

const char* stateFormatName(StateFormat format) {
  switch (format) {
    case StateFormat::kF32:
      return "f32";
    case StateFormat::kF16:
      return "f16";
    case StateFormat::kInt8:
      return "int8";
  }
  return "?";
}

CacheShape sessionCache(const CacheShape& cache, uint32_t session) {
  CacheShape shape = cache;
  shape.session = session;
  const SessionWindows* const all = cache.sessions;
  if (all == nullptr) {
    return shape;
  }
  const uint32_t slack = cache.ring - cache.window;
  const uint32_t room = cache.sinkRoom();
  shape.chosen_window = cache.chosen_window != 0 ? cache.chosen_window : cache.window;
  shape.all_ring = shape.first_ring = 0;
  uint32_t longest = 0;
  for (uint32_t i = 0; i < all->count; ++i) {
    const uint32_t ring = sessionSlots(cache.windowOf(i) + slack);
    shape.first_ring += i < session ? ring : 0;
    shape.all_ring += ring;
    longest = std::max(longest, cache.windowOf(i));
  }
  shape.window = session < all->count ? cache.windowOf(session) : longest;
  shape.ring = shape.window + slack;
  shape.all_sinks = all->share_sinks ? room : room * all->count;
  shape.first_sink = all->share_sinks ? 0 : room * session;
  return shape;
}

CacheShape longestSession(const CacheShape& cache) {
  uint32_t longest = 0;
  for (uint32_t i = 1; i < cache.sessionCount(); ++i) {
    longest = cache.windowOf(i) > cache.windowOf(longest) ? i : longest;
  }
  return sessionCache(cache, longest);
}

SideLayout sideLayout(KvFormat format, const CacheShape& shape) {
  const uint64_t heads = shape.n_kv_heads;
  SideLayout layout;
  layout.ring_word = heads * shape.sinkSlots() * kvValueWords(KvFormat::kF16, shape.head_dim);
  layout.scales_word =
      layout.ring_word + heads * shape.ringSlots() * kvValueWords(format, shape.head_dim);
  const uint64_t scales =
      format == KvFormat::kF16 ? 0 : heads * shape.ringSlots() * kvGroups(shape.head_dim);
  layout.bytes = 4 * (layout.scales_word + (scales + 1) / 2);
  return layout;
}

}  // namespace oriel_internal
