// Turn starts of a conversation, so that eviction can drop whole turns.
#pragma once

#include <cstdint>

namespace oriel_internal {

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

}  // namespace oriel_internal
