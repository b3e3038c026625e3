// Where turns of a conversation begin, so that eviction can drop whole turns.
#pragma once

#include <cstdint>

namespace oriel {

/// The latest kCapacity turn starts, in order. When a window holds more turns than that, the oldest ones
/// are evicted a little early.
class TurnMarks {
 public:
  static constexpr uint32_t kCapacity = 256;

  /// Starts never decrease.
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

  /// The first turn that begins at or after `oldest`, or `oldest` itself when no turn does (one turn is
  /// longer than the window).
  uint64_t firstWholeTurn(uint64_t oldest) const {
    for (uint32_t i = 0; i < count_; ++i) {
      if (at(i) >= oldest) {
        return at(i);
      }
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
    const uint64_t found = firstWholeTurn(token);
    return count_ != 0 && at(count_ - 1) >= token && found == token;
  }

  uint32_t count() const { return count_; }
  uint64_t at(uint32_t i) const { return starts_[(begin_ + i) % kCapacity]; }

 private:
  uint64_t starts_[kCapacity] = {};
  uint32_t begin_ = 0;
  uint32_t count_ = 0;
};

}  // namespace oriel
