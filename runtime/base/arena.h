// A bump allocator in one block of exactly the planned size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "base/checked.h"

namespace oriel_internal {

/// An Arena hands out zeroed pieces of a block. Single pieces are never freed.
//
/// Measuring: an Arena without a block returns null but counts the bytes. A builder is written once and runs twice:
/// `build(measure)` counts the bytes, `build(real)` builds. Planned bytes thus equal allocated bytes. A builder must
/// request the same pieces in the same order on both runs, and may write to a piece only if it is not null
/// (`arena.measuring()`).
class Arena {
 public:
  /// Alignment of every piece, so that sizes do not depend on the block's address.
  static constexpr size_t kAlignment = 16;

  Arena() = default;  // measures
  /// `block` is zeroed, aligned to kAlignment and outlives the Arena's pieces.
  Arena(void* block, uint64_t bytes) : block_(static_cast<uint8_t*>(block)), capacity_(bytes) {}

  bool measuring() const { return block_ == nullptr; }
  uint64_t used() const { return used_; }

  /// `count` zeroed elements of T. Null when measuring, when the count is absurd or when the block is full (then
  /// exhausted() stays true).
  template <typename T>
  T* take(uint64_t count) {
    static_assert(std::is_trivially_destructible<T>::value, "an arena runs no destructors");
    static_assert(alignof(T) <= kAlignment, "raise kAlignment");
    uint64_t bytes = 0;
    if (!checkedMul(count, sizeof(T), &bytes) || bytes > SIZE_MAX / 2) {
      exhausted_ = true;
      return nullptr;
    }
    const uint64_t begin = used_;
    used_ = alignUp(used_ + bytes, kAlignment);
    if (measuring()) {
      return nullptr;
    }
    if (used_ > capacity_) {
      exhausted_ = true;
      return nullptr;
    }
    return reinterpret_cast<T*>(block_ + begin);
  }

  /// True after a request failed: the plan and the build disagree, or a size was absurd.
  bool exhausted() const { return exhausted_; }

 private:
  uint8_t* block_ = nullptr;
  uint64_t capacity_ = 0;
  uint64_t used_ = 0;
  bool exhausted_ = false;
};

}  // namespace oriel_internal
