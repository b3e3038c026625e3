// Named positions in a conversation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kv/cache_layout.h"
#include "shaders/shared/layout.h"

namespace oriel_internal {

struct Bookmark {
  char name[32] = {};  ///< ends in NUL
  uint64_t position = 0;
};

/// Ascending by position.
class Bookmarks {
 public:
  static constexpr uint32_t kCapacity = 16;
  static constexpr uint32_t kNameBytes = sizeof(Bookmark::name);

  const Bookmark* find(const char* name) const {
    for (uint32_t i = 0; i < count_; ++i) {
      if (std::strcmp(marks_[i].name, name) == 0) {
        return &marks_[i];
      }
    }
    return nullptr;
  }
  /// Sets a name at the end of the conversation; an existing name moves. False: too many.
  bool set(const char* name, uint64_t position) {
    drop(name);
    if (count_ == kCapacity) {
      return false;
    }
    Bookmark& mark = marks_[count_++];
    mark = Bookmark();
    std::strncpy(mark.name, name, kNameBytes - 1);
    mark.position = position;
    return true;
  }
  /// Forgets names after `position` tokens.
  void truncate(uint64_t position) {
    while (count_ != 0 && marks_[count_ - 1].position > position) {
      --count_;
    }
  }
  void clear() { *this = Bookmarks(); }

  uint32_t count() const { return count_; }
  const Bookmark& at(uint32_t i) const { return marks_[i]; }

 private:
  void drop(const char* name) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count_; ++i) {
      if (std::strcmp(marks_[i].name, name) != 0) {
        marks_[kept++] = marks_[i];
      }
    }
    count_ = kept;
  }

  Bookmark marks_[kCapacity];
  uint32_t count_ = 0;
};

// Turn starts of a conversation, so that eviction can drop whole turns.

/// The latest kCapacity turn starts, in order. If a window holds more turns, the oldest ones are evicted a little early.
class TurnMarks {
 public:
  static constexpr uint32_t kCapacity = 256;

  /// Starts must not decrease.
  void mark(uint64_t token) {
    if (count_ != 0 && at(count_ - 1) == token) {
      return;
    }
    if (count_ == kCapacity) {
      begin_ = (begin_ + 1) % kCapacity;
      --count_;
    }
    starts_[(begin_ + count_) % kCapacity] = token;
    ++count_;
  }

  /// The first visible token in a window of `window` tokens that reaches back to `oldest`: the first turn that begins
  /// there or later. If the turn that contains `oldest` is unfinished or longer than half the window, it is evicted
  /// token by token and the result is `oldest`. Text before the first turn counts as a turn, if its start is known.
  /// Never decreases while tokens and turns are added.
  uint64_t firstSeen(uint64_t oldest, uint64_t window) const {
    uint64_t begin = 0;
    bool begin_known = count_ < kCapacity;
    for (uint32_t i = 0; i < count_; ++i) {
      if (at(i) >= oldest) {
        const bool is_long = begin_known && at(i) - begin > window / 2;
        return is_long ? oldest : at(i);
      }
      begin = at(i);
      begin_known = true;
    }
    return oldest;
  }

  /// Forgets turns that begin at or after `token`.
  void truncate(uint64_t token) {
    while (count_ != 0 && at(count_ - 1) >= token) {
      --count_;
    }
  }
  void clear() { count_ = 0; }
  bool has(uint64_t token) const {
    for (uint32_t i = 0; i < count_; ++i) {
      if (at(i) == token) {
        return true;
      }
    }
    return false;
  }

  uint32_t count() const { return count_; }
  uint64_t at(uint32_t i) const { return starts_[(begin_ + i) % kCapacity]; }

 private:
  uint64_t starts_[kCapacity] = {};
  uint32_t begin_ = 0;
  uint32_t count_ = 0;
};

// Slots that a token is stored in and sees: sinks and a ring.

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
