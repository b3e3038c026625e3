// The ids of cached tokens by slot, in host memory.
#pragma once

#include "base/arena.h"
#include "base/checked.h"
#include "kv/window.h"

namespace oriel_internal {

/// Tokens that are still in their slots. `position` were committed; `stored` slots were written (Session::stored_),
/// including slots whose earlier contents are gone.
struct HeldTokens {
  uint64_t sinks = 0;  ///< tokens below this
  uint64_t first = 0;  ///< and tokens from here up to
  uint64_t position = 0;

  uint64_t count() const { return sinks + (position - first); }
  /// The end of the held range that contains `token`.
  uint64_t endOfRun(uint64_t token) const {
    return token < sinks && sinks < first ? sinks : position;
  }
  bool has(uint64_t token) const { return token < sinks || (token >= first && token < position); }
};

/// `from`: start of the tokens copied from a session with another window.
inline HeldTokens heldTokens(const CacheShape& cache, uint64_t position, uint64_t stored,
                             uint64_t from = 0) {
  HeldTokens held;
  held.position = position;
  held.sinks = std::min<uint64_t>(position, cache.sinks);
  held.first = std::max({held.sinks, stored - std::min<uint64_t>(stored, cache.ring), from});
  held.first = std::min(held.first, position);
  return held;
}

/// One id per slot; kUnknown if the slot was never used. Each id has marks that allow rereading the tokens in the same
/// steps. A row of a picture has an id below kUnknown (exec/picture_store.h).
class TokenIds {
 public:
  static constexpr int32_t kUnknown = -1;

  /// Marks of a token, in bits that ids do not use.
  static constexpr uint32_t kBegins = 1u << 24;  ///< a step, ...
  static constexpr uint32_t kBatch = 1u << 25;  ///< ... of a prefill batch; otherwise of this token
                                                ///< alone
  /// A message that began a turn ends here; turns are recorded at their end.
  static constexpr uint32_t kTurn = 1u << 26;
  /// The entry is a picture's row, not an id.
  static constexpr uint32_t kPictureRow = 1u << 27;
  static_assert(kMaxVocabulary <= kBegins, "ids leave these bits free");
  /// The id of row number `row` of all pictures. Row numbers are below kPictureRows.
  static constexpr uint32_t kPictureRows = kBegins;
  static constexpr int32_t idOfRow(uint32_t row) {
    return kUnknown - 1 - static_cast<int32_t>(row);
  }
  static constexpr bool isRow(int32_t id) { return id < kUnknown; }
  static constexpr uint32_t rowOf(int32_t id) { return static_cast<uint32_t>(kUnknown - 1 - id); }

  /// Takes its memory from `arena` once. `shared`: ids of shared sinks.
  void init(const CacheShape& cache, int32_t* shared, Arena* arena) {
    cache_ = cache;
    shares_ = cache.sharesSinks();
    sinks_ = shares_ ? shared : arena->take<int32_t>(cache.sinkRoom());
    ring_ = arena->take<int32_t>(cache.ring);
  }
  /// Changes which slots are sinks; the number of slots is unchanged.
  void layOut(const CacheShape& cache) { cache_ = cache; }
  /// `with_shared`: also the shared sinks.
  void forget(bool with_shared = false) {
    if (!shares_ || with_shared) {
      std::fill_n(sinks_, cache_.sinkRoom(), kUnknown);
    }
    std::fill_n(ring_, cache_.ring, kUnknown);
  }
  /// Does not overwrite an entry that other sessions may be reading.
  void set(uint64_t token, int32_t id, uint32_t marks = 0) {
    const int32_t entry = entryOf(id, marks);
    int32_t& place = *placeOf(token);
    if (place != entry) {
      place = entry;
    }
  }
  void addMark(uint64_t token, uint32_t mark) {
    if (at(token) != kUnknown && (marks(token) & mark) == 0) {
      *placeOf(token) |= static_cast<int32_t>(mark);
    }
  }
  int32_t at(uint64_t token) const { return idOf(*placeOf(token)); }
  /// Copies ids from token `first` on.
  void copy(uint64_t first, uint64_t count, int32_t* ids) const {
    for (uint64_t i = 0; i < count; ++i) {
      ids[i] = at(first + i);
    }
  }
  /// For recalled tokens (CacheShape::recalled).
  int32_t recalled(uint32_t i) const { return idOf(sinks_[cache_.sinks + i]); }
  void setRecalled(uint32_t i, int32_t id) { sinks_[cache_.sinks + i] = entryOf(id, 0); }
  /// 0 for unknown tokens and tokens from a snapshot.
  uint32_t marks(uint64_t token) const {
    const int32_t entry = *placeOf(token);
    return entry < 0 ? 0 : static_cast<uint32_t>(entry) & ~(kIdBits | kPictureRow);
  }
  /// The id in an entry of the shared ids.
  static int32_t idOf(int32_t entry) {
    const uint32_t bits = static_cast<uint32_t>(entry) & kIdBits;
    return entry < 0                                           ? kUnknown
           : (static_cast<uint32_t>(entry) & kPictureRow) != 0 ? idOfRow(bits)
                                                               : static_cast<int32_t>(bits);
  }

 private:
  static constexpr uint32_t kIdBits = kBegins - 1;

  static int32_t entryOf(int32_t id, uint32_t marks) {
    return id == kUnknown ? kUnknown
           : isRow(id)    ? static_cast<int32_t>(rowOf(id) | kPictureRow | marks)
                          : id | static_cast<int32_t>(marks);
  }
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

/// Ids from `first` on, up to the first token that is not held. *count of them, copied if there is room for all. False:
/// token `first` is evicted or not yet read.
inline bool copyHeld(const TokenIds& ids, const HeldTokens& held, uint64_t first, int32_t* out,
                     uint64_t capacity, uint64_t* count) {
  *count = 0;
  if (!held.has(first)) {
    return first == held.position;
  }
  *count = held.endOfRun(first) - first;
  ids.copy(first, *count <= capacity ? *count : 0, out);
  return true;
}

}  // namespace oriel_internal
