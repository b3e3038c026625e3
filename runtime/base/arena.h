// Memory in planned blocks: arenas for the lifetime of a model, scratch for a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

#include "base/checked.h"
#include "oriel/advanced.h"

namespace oriel_internal {

// A bump allocator in one block of exactly the planned size.

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

// Memory for one call of unknown need: blocks from the app's allocator, up to a cap.

/// Hands out pieces and frees them together: by release() to an earlier place, or by the destructor. Freed bytes are
/// overwritten with zeros, since they may hold user text. After one refusal every request is refused.
class Scratch {
 public:
  static constexpr size_t kAlignment = 16;

  /// `most_bytes`: total of all blocks, including their headers.
  Scratch(const oriel_allocator& allocator, size_t most_bytes)
      : allocator_(allocator), most_bytes_(most_bytes) {}
  /// For a part of another scratch's work. If the system refuses memory here, `around` fails, too.
  Scratch(Scratch* around, size_t most_bytes)
      : around_(around), allocator_(around->allocator_), most_bytes_(most_bytes) {}
  ~Scratch() {
    releaseTo({});
    if (around_ != nullptr && noMemory()) {
      around_->failed_ = true;
    }
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// `count` zeroed elements; null at the cap or if the system refuses.
  template <typename T>
  T* take(uint64_t count) {
    static_assert(std::is_trivially_destructible<T>::value, "no destructors are run");
    static_assert(alignof(T) <= kAlignment, "raise kAlignment");
    uint64_t bytes = 0;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): some pieces hold pointers
    if (!checkedMul(count, sizeof(T), &bytes)) {
      failed_ = true;
      return nullptr;
    }
    void* const piece = takeBytes(bytes);
    if (piece != nullptr) {
      std::memset(piece, 0, static_cast<size_t>(bytes));
    }
    return static_cast<T*>(piece);
  }
  /// Uninitialised bytes.
  char* takeText(uint64_t bytes) { return static_cast<char*>(takeBytes(bytes)); }

  bool failed() const { return failed_; }
  /// True if the cap was reached, false if the system refused.
  bool atCap() const { return at_cap_; }
  bool noMemory() const { return failed_ && !at_cap_; }
  size_t usedBytes() const { return total_bytes_; }
  /// Bytes until the cap, not counting free bytes in existing blocks.
  size_t leftBytes() const { return most_bytes_ - total_bytes_; }

 private:
  struct Block {
    Block* before;
    size_t bytes;  ///< including this header
  };

 public:
  struct Place {
    Block* block = nullptr;
    size_t used = 0;
  };
  Place place() const { return {last_, used_}; }
  /// Frees all pieces taken since `place`.
  void releaseTo(const Place& place);

 private:
  void* takeBytes(uint64_t bytes);

  Scratch* const around_ = nullptr;
  const oriel_allocator& allocator_;
  const size_t most_bytes_;
  size_t total_bytes_ = 0;  ///< of all blocks
  Block* last_ = nullptr;
  size_t used_ = 0;  ///< in the last block
  bool failed_ = false;
  bool at_cap_ = false;
};

// Working memory for one call: first the planned block, then the app's allocator.

/// calloc and free, for apps without an allocator of their own.
const oriel_allocator& defaultAllocator();

/// True if the allocator is the default one. Its large blocks are fresh zero pages, and its memory is private to this
/// process.
bool isDefault(const oriel_allocator& allocator);

/// Zeroed, 64-byte aligned host memory from the app's allocator. Null if it refuses or the size exceeds the address
/// space.
void* allocateZeroed(const oriel_allocator& allocator, uint64_t bytes);
/// Frees it.
inline void release(const oriel_allocator& allocator, void* block, uint64_t bytes) {
  allocator.release(block, static_cast<size_t>(bytes), allocator.user);
}

/// A stack: Borrowed's destructor returns pieces in reverse order.
class Workspace {
 public:
  Workspace(void* block, size_t bytes, const oriel_allocator* allocator)
      : block_(static_cast<uint8_t*>(block)), capacity_(bytes), allocator_(allocator) {}

  /// Free bytes of the block. Larger requests use the allocator.
  size_t available() const { return capacity_ - used_; }

 private:
  friend class BorrowedBytes;
  uint8_t* block_;
  size_t capacity_;
  size_t used_ = 0;
  const oriel_allocator* allocator_;
};

/// A piece of a Workspace for the lifetime of this object. data() is null if memory ran out, and never for 0 bytes.
/// 16-byte aligned, not zeroed. It is overwritten with zeros on return, since it may hold user text.
class BorrowedBytes {
 public:
  BorrowedBytes(Workspace* workspace, uint64_t bytes);
  ~BorrowedBytes();
  BorrowedBytes(const BorrowedBytes&) = delete;
  BorrowedBytes& operator=(const BorrowedBytes&) = delete;

  void* data() const { return data_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  Workspace* workspace_;
  void* data_ = nullptr;
  size_t bytes_;
  bool allocated_ = false;
};

}  // namespace oriel_internal
