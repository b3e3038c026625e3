// Merges symbols to tokens, and the hash table of pairs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/arena.h"

namespace oriel_internal {

// A hash table from external keys to small numbers. Open addressing in arena memory, four bytes per slot, with a bound
// on every search for any input.

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

// Merges adjacent symbols, best pair first: the core of both BPE and SPM.

/// A symbol covers `bytes` bytes of the word from its own index; the next one follows directly.
struct Symbol {
  uint32_t previous;  ///< index of the previous symbol; set by mergeSymbols
  uint32_t bytes;     ///< 0: merged into a neighbour
  int32_t id;         ///< -1: not in the vocabulary
};

struct MergeCandidate {
  uint32_t priority;  ///< lower is better; on a tie the leftmost
  uint32_t left;      ///< index of the left symbol
  uint32_t bytes;     ///< of both together; also detects that either has changed
  int32_t merged;     ///< id of the result
};

/// Required number of candidates: a word of n symbols has n - 1 pairs, and each of at most n - 1 merges removes one
/// candidate and adds at most two.
constexpr size_t mergeCandidateCapacity(size_t bytes) { return 2 * bytes; }

/// `symbols` has one entry per byte of the word; bytes and id are set where a symbol begins. `pair(left, right,
/// &candidate)` returns true if the symbols at these indices merge, and sets priority and merged. O(n log n). Afterwards
/// the remaining symbols begin at 0 and are contiguous.
template <typename Pair>
void mergeSymbols(Symbol* symbols, uint32_t word_bytes, MergeCandidate* heap, const Pair& pair) {
  const auto worse = [](const MergeCandidate& a, const MergeCandidate& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.left > b.left;
  };
  size_t count = 0;
  const auto consider = [&](uint32_t left, uint32_t right) {
    MergeCandidate candidate;
    if (pair(left, right, &candidate)) {
      candidate.left = left;
      candidate.bytes = symbols[left].bytes + symbols[right].bytes;
      heap[count++] = candidate;
      return true;
    }
    return false;
  };
  uint32_t left = 0;
  for (uint32_t right = symbols[0].bytes; right < word_bytes; right += symbols[right].bytes) {
    symbols[right].previous = left;
    consider(left, right);
    left = right;
  }
  std::make_heap(heap, heap + count, worse);
  while (count > 0) {
    std::pop_heap(heap, heap + count, worse);
    const MergeCandidate best = heap[--count];
    Symbol* first = &symbols[best.left];
    const uint32_t right = best.left + first->bytes;
    if (first->bytes == 0 || right >= word_bytes ||
        first->bytes + symbols[right].bytes != best.bytes) {
      continue;  // another merge has already changed this pair
    }
    symbols[right].bytes = 0;
    first->bytes = best.bytes;
    first->id = best.merged;
    const uint32_t next = best.left + best.bytes;
    if (best.left > 0 && consider(first->previous, best.left)) {
      std::push_heap(heap, heap + count, worse);
    }
    if (next < word_bytes) {
      symbols[next].previous = best.left;
      if (consider(best.left, next)) {
        std::push_heap(heap, heap + count, worse);
      }
    }
  }
}

}  // namespace oriel_internal
