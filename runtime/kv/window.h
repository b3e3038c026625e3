// Which slots a token is stored in and which it sees: sinks and a ring.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kv/cache_layout.h"
#include "shaders/shared/layout.h"

namespace oriel_internal {

/// Of the session whose view it is, as the push constants of an op that reads or writes its memory have it.
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

/// The StreamingLLM window as arithmetic on token indices (0 is the session's first token). Token t
/// sees the first `sinks` tokens and the last `window` tokens up to itself.
class SlidingWindow {
 public:
  SlidingWindow() = default;
  explicit SlidingWindow(const CacheShape& shape) : shape_(shape) {}

  /// Slot of token t: sinks have their own, the rest walk round the ring.
  uint32_t slot(uint64_t t) const {
    return t < shape_.sinks ? static_cast<uint32_t>(t) : shape_.sinkRoom() + ringSlot(t);
  }

  /// What token t writes and sees. Assumes the tokens before it are stored. Tokens before `floor` are not seen even if
  /// they are within the window (sinks are, and what came back behind them).
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

  /// First token that the window of token t reaches.
  uint64_t oldest(uint64_t t) const { return t + 1 > shape_.window ? t + 1 - shape_.window : 0; }

  /// Index that a query is rotated to when it scores sink keys. Inside the cache a sink stands at its own
  /// index and the newest token right behind everything it sees; RoPE scores depend on differences only, so
  /// rotating the query there is exactly StreamingLLM's positions-in-cache.
  static uint64_t sinkQueryIndex(const View& view) {
    return static_cast<uint64_t>(view.n_sinks) + view.count - 1;
  }

  /// Tokens that a query sees.
  static uint32_t visible(const View& view) { return view.n_sinks + view.count; }

  /// True if, after `stored` tokens, the session can go back to having seen only the first `kept`: all
  /// that token `kept` would see is still stored. Sinks always are.
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
