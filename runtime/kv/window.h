// Slots that a token is stored in and sees: sinks and a ring.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kv/cache_layout.h"
#include "shaders/shared/layout.h"

namespace oriel_internal {

/// Push constants of ops that access the memory of a view's session.
template <typename Push>
CacheShape sessionShape(const Push& push, uint32_t n_kv_heads, uint32_t head_dim,
                        const View& view) {
  CacheShape shape;
  shape.n_kv_heads = n_kv_heads;
  shape.head_dim = head_dim;
  shape.sinks = push.sinks;
  shape.ring = view.ring;
  shape.all_sinks = push.all_sinks;
  shape.all_ring = view.all_ring;
  shape.first_sink = view.first_sink;
  shape.first_ring = view.first;
  return shape;
}

/// The StreamingLLM window as arithmetic on token indices (0 is the session's first token). Token t sees the first
/// `sinks` tokens and the last `window` tokens including itself.
class SlidingWindow {
 public:
  SlidingWindow() = default;
  explicit SlidingWindow(const CacheShape& shape) : shape_(shape) {}

  /// Slot of token t: sinks have their own, the others use the ring.
  uint32_t slot(uint64_t t) const {
    return t < shape_.sinks ? static_cast<uint32_t>(t) : shape_.sinkRoom() + ringSlot(t);
  }

  /// Slots that token t writes and sees, if the tokens before it are stored. Tokens before `floor` are hidden even if
  /// they are within the window, except sinks and recalled tokens.
  View view(uint64_t t, uint64_t floor = 0) const {
    View view = {};
    view.ring = shape_.ring;
    view.first = shape_.first_ring;
    view.all_ring = shape_.ringSlots();
    view.first_sink = shape_.first_sink;
    view.slot = slot(t);
    view.n_sinks = static_cast<uint32_t>(std::min<uint64_t>(shape_.sinks, t + 1));
    if (t >= shape_.sinks) {
      view.n_sinks += shape_.recalled;
      const uint64_t first = std::max({oldest(t), std::min(floor, t), uint64_t{shape_.sinks}});
      view.begin = ringSlot(first);
      view.count = static_cast<uint32_t>(t - first + 1);
    }
    return view;
  }

  /// First token in the window of token t.
  uint64_t oldest(uint64_t t) const { return t + 1 > shape_.window ? t + 1 - shape_.window : 0; }

  /// Position that a query is rotated to when it scores sink keys. In the cache a sink's position is its index, and the
  /// newest token comes directly after everything it sees. RoPE scores depend only on differences, so this rotation
  /// implements StreamingLLM's positions in the cache.
  static uint64_t sinkQueryIndex(const View& view) {
    return static_cast<uint64_t>(view.n_sinks) + view.count - 1;
  }

  /// Tokens that a query sees.
  static uint32_t visible(const View& view) { return view.n_sinks + view.count; }

  /// True if, after `stored` tokens, the session can go back to the first `kept`: everything that token `kept` would see
  /// is still stored. Sinks always are.
  bool canRewind(uint64_t stored, uint64_t kept) const {
    const uint64_t first = std::max<uint64_t>(oldest(kept), shape_.sinks);
    const uint64_t ring_first = stored > shape_.ring ? stored - shape_.ring : 0;
    return kept <= stored && (first >= kept || first >= ring_first);
  }

 private:
  /// t >= sinks.
  uint32_t ringSlot(uint64_t t) const {
    return static_cast<uint32_t>((t - shape_.sinks) % shape_.ring);
  }

  CacheShape shape_;
};

}  // namespace oriel_internal
