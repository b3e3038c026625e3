// Merges adjacent symbols, best pair first: the core of both BPE and SPM.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace oriel_internal {

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
