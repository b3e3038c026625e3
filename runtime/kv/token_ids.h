// Which tokens the cache holds: their ids, slot by slot, where the host can read them.
#pragma once

#include "base/arena.h"
#include "kv/window.h"

namespace oriel {

/// Tokens of a session whose slots hold them still. `position` were committed; `stored` slots count as written
/// (Session::stored_): what was in the ring before does not come back.
struct HeldTokens {
  uint64_t sinks = 0;  ///< the first so many, and
  uint64_t first = 0;  ///< those from here on, up to
  uint64_t position = 0;

  uint64_t count() const { return sinks + (position - first); }
  /// The first token after `token`, which is held, that is not.
  uint64_t endOfRun(uint64_t token) const {
    return token < sinks && sinks < first ? sinks : position;
  }
  bool has(uint64_t token) const { return token < sinks || (token >= first && token < position); }
};

/// `from`: what came from a session of another window begins there.
inline HeldTokens heldTokens(const CacheShape& cache, uint64_t position, uint64_t stored,
                             uint64_t from = 0) {
  HeldTokens held;
  held.position = position;
  held.sinks = std::min<uint64_t>(position, cache.sinks);
  held.first = std::max({held.sinks, stored - std::min<uint64_t>(stored, cache.ring), from});
  held.first = std::min(held.first, position);
  return held;
}

/// One id for each slot; kUnknown where no token has been.
class TokenIds {
 public:
  static constexpr int32_t kUnknown = -1;

  /// Takes its memory from `arena`, now and for good. `shared`: of the sinks, where sessions share them.
  void init(const CacheShape& cache, int32_t* shared, Arena* arena) {
    cache_ = cache;
    shares_ = cache.sharesSinks();
    sinks_ = shares_ ? shared : arena->take<int32_t>(cache.sinkRoom());
    ring_ = arena->take<int32_t>(cache.ring);
  }
  /// Of as many slots, of which others are sinks.
  void layOut(const CacheShape& cache) { cache_ = cache; }
  /// `with_shared`: those of the sinks, too, where sessions share them.
  void forget(bool with_shared = false) {
    if (!shares_ || with_shared) {
      std::fill_n(sinks_, cache_.sinkRoom(), kUnknown);
    }
    std::fill_n(ring_, cache_.ring, kUnknown);
  }
  /// What other sessions may read is not written when it is there.
  void set(uint64_t token, int32_t id) {
    int32_t& place = *placeOf(token);
    if (place != id) {
      place = id;
    }
  }
  int32_t at(uint64_t token) const { return *placeOf(token); }

 private:
  int32_t* placeOf(uint64_t token) const {
    const uint32_t slot = SlidingWindow(cache_).slot(token);
    const uint32_t room = cache_.sinkRoom();
    return slot < room ? sinks_ + slot : ring_ + (slot - room);
  }

  CacheShape cache_;
  int32_t* sinks_ = nullptr;
  int32_t* ring_ = nullptr;
  bool shares_ = false;
};

}  // namespace oriel
