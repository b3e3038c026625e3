// Which slots a token is stored in and which it sees: sinks and a ring.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kv/cache_layout.h"
#include "shaders/shared/layout.h"

namespace oriel {

/// The StreamingLLM window as arithmetic on token indices (0 is the session's first token). Token t
/// sees the first `sinks` tokens and the last `window` tokens up to itself.
class SlidingWindow {
 public:
  explicit SlidingWindow(const CacheShape& shape) : shape_(shape) {}

  /// Slot of token t: sinks have their own, the rest walk round the ring.
  uint32_t slot(uint64_t t) const {
    return t < shape_.sinks ? static_cast<uint32_t>(t) : shape_.sinks + ringSlot(t);
  }

  /// Index that token t's query is rotated to when it scores sink keys. Inside the cache a sink sits at
  /// its own index and the newest token at min(t, sinks + window - 1); RoPE scores depend on
  /// differences only, so rotating the query there is exactly StreamingLLM's positions-in-cache.
  uint64_t sinkQueryIndex(uint64_t t) const {
    return std::min<uint64_t>(t, static_cast<uint64_t>(shape_.sinks) + shape_.window - 1);
  }

  /// Everything about token t but its id and its rotations. Assumes the tokens before it are stored.
  TokenStep step(uint64_t t) const {
    TokenStep step = {};
    step.slot = slot(t);
    step.n_sinks = static_cast<uint32_t>(std::min<uint64_t>(shape_.sinks, t + 1));
    if (t >= shape_.sinks) {
      const uint64_t oldest = t + 1 > shape_.window ? t + 1 - shape_.window : 0;
      const uint64_t first = std::max<uint64_t>(oldest, shape_.sinks);
      step.ring_begin = ringSlot(first);
      step.n_ring = static_cast<uint32_t>(t - first + 1);
    }
    return step;
  }

  /// Tokens the query of token t sees.
  uint32_t visible(uint64_t t) const {
    const TokenStep s = step(t);
    return s.n_sinks + s.n_ring;
  }

 private:
  /// t >= sinks.
  uint32_t ringSlot(uint64_t t) const {
    return static_cast<uint32_t>((t - shape_.sinks) % shape_.ring);
  }

  CacheShape shape_;
};

}  // namespace oriel
