// A hash table from external keys to small numbers. Open addressing in arena memory, four bytes per slot, with a bound
// on every search for any input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/arena.h"

namespace oriel_internal {

/// FNV-1a over the bytes, with a final mix so that every bit of end() depends on the whole key.
class KeyHash {
 public:
  explicit KeyHash(uint64_t seed) : state_(0xcbf29ce484222325ull ^ seed) {}
  void add(char byte) { state_ = (state_ ^ static_cast<uint8_t>(byte)) * 0x100000001b3ull; }
  void add(const char* text, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
      add(text[i]);
    }
  }
  uint64_t end() const { return mix(state_); }

  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
  }

 private:
  uint64_t state_;
};

class IndexTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  /// A slot has 21 bits for the number and 11 bits of the hash, which avoid most comparisons.
  static constexpr uint32_t kIndexBits = 21;
  static constexpr uint32_t kMaxCount = 1u << (kIndexBits - 1);
  /// At half load, a longer search occurs by chance once in 10^15 tables of a million keys.
  static constexpr uint32_t kMaxProbes = 256;

  /// Memory for `count` <= kMaxCount keys: eight bytes each. False if the arena is exhausted.
  bool take(Arena* arena, uint32_t count) {
    n_slots_ = count < 8 ? 16 : 2 * count;
    slots_ = arena->take<uint32_t>(n_slots_);
    return slots_ != nullptr;
  }

  /// The number that satisfies `equals(number)`, or kNone.
  template <typename Equals>
  uint32_t find(uint64_t hash, const Equals& equals) const {
    const uint32_t* slot = search(hash, equals);
    return slot == nullptr || *slot == 0 ? kNone : numberOf(*slot);
  }

  /// Reads slots that were written elsewhere. False if one holds a number that is not below `end`.
  bool copyFrom(const void* slots, uint32_t end) {
    std::memcpy(slots_, slots, bytes());
    bool fits = true;
    for (uint32_t i = 0; i < n_slots_; ++i) {
      fits = fits & (slots_[i] == 0 || numberOf(slots_[i]) < end);
    }
    return fits;
  }
  size_t bytes() const { return size_t{n_slots_} * sizeof(uint32_t); }

  enum class Inserted { kNew, kKnown, kTooMany };
  /// Adds `number`, unless an equal one exists: that one stays (kKnown), or is replaced if `replace`. kTooMany: more
  /// collisions than chance explains.
  template <typename Equals>
  Inserted insert(uint64_t hash, uint32_t number, bool replace, const Equals& equals) {
    uint32_t* slot = search(hash, equals);
    if (slot == nullptr) {
      return Inserted::kTooMany;
    }
    const bool known = *slot != 0;
    if (!known || replace) {
      *slot = tagOf(hash) | (number + 1);
    }
    return known ? Inserted::kKnown : Inserted::kNew;
  }

 private:
  static uint32_t tagOf(uint64_t hash) {
    return static_cast<uint32_t>(hash >> 32) & ~((1u << kIndexBits) - 1);
  }
  static uint32_t numberOf(uint32_t slot) { return (slot & ((1u << kIndexBits) - 1)) - 1; }

  /// The slot of the key, or the empty slot for it; null after kMaxProbes.
  template <typename Equals>
  uint32_t* search(uint64_t hash, const Equals& equals) const {
    // The low half of the hash, scaled to the number of slots.
    uint32_t at = static_cast<uint32_t>((hash & 0xFFFFFFFFu) * n_slots_ >> 32);
    for (uint32_t probe = 0; probe < kMaxProbes; ++probe) {
      const uint32_t slot = slots_[at];
      const bool same_tag = (slot & ~((1u << kIndexBits) - 1)) == tagOf(hash);
      if (slot == 0 || (same_tag && equals(numberOf(slot)))) {
        return &slots_[at];
      }
      at = at + 1 == n_slots_ ? 0 : at + 1;
    }
    return nullptr;
  }

  uint32_t* slots_ = nullptr;
  uint32_t n_slots_ = 0;
};

}  // namespace oriel_internal
