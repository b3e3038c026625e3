// Working memory for one call: first the planned block, then the app's allocator.
#pragma once

#include <cstddef>
#include <cstdint>

#include "oriel/advanced.h"

namespace oriel_internal {

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
