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

  /// Takes its memory from `arena`, now and for good.
  void init(const CacheShape& cache, Arena* arena) {
    cache_ = cache;
    ids_ = arena->take<int32_t>(tokenIdCount(cache));
  }
  /// Of as many slots, of which others are sinks.
  void layOut(const CacheShape& cache) { cache_ = cache; }
  void forget() { std::fill_n(ids_, tokenIdCount(cache_), kUnknown); }
  void set(uint64_t token, int32_t id) { ids_[SlidingWindow(cache_).slot(token)] = id; }
  int32_t at(uint64_t token) const { return ids_[SlidingWindow(cache_).slot(token)]; }

 private:
  CacheShape cache_;
  int32_t* ids_ = nullptr;
};

}  // namespace oriel
