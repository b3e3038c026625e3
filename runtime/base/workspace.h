// Working memory for one call: a planned block first, the app's allocator for what is larger.
#pragma once

#include <cstddef>
#include <cstdint>

#include "oriel/advanced.h"

namespace oriel_internal {

/// calloc and free, for apps that bring no allocator.
const oriel_allocator& defaultAllocator();

/// Blocks of this allocator are zeroed, of pages that the system has not had to find yet where they are large, and are
/// memory of this process alone.
bool isDefault(const oriel_allocator& allocator);

/// Zeroed, 64-byte aligned host memory from the app's allocator; null when it refuses or when there are
/// not so many addresses.
void* allocateZeroed(const oriel_allocator& allocator, uint64_t bytes);
/// Gives it back.
inline void release(const oriel_allocator& allocator, void* block, uint64_t bytes) {
  allocator.release(block, static_cast<size_t>(bytes), allocator.user);
}

/// Stack-like: pieces are given back in reverse order, by Borrowed's destructor.
class Workspace {
 public:
  Workspace(void* block, size_t bytes, const oriel_allocator* allocator)
      : block_(static_cast<uint8_t*>(block)), capacity_(bytes), allocator_(allocator) {}

  /// Bytes of the block that are free; more are borrowed from the allocator.
  size_t available() const { return capacity_ - used_; }

 private:
  friend class BorrowedBytes;
  uint8_t* block_;
  size_t capacity_;
  size_t used_ = 0;
  const oriel_allocator* allocator_;
};

/// A piece of a Workspace for the length of a scope. data() is null when no memory could be had, and never
/// for no bytes. 16-byte aligned, not zeroed; overwritten with zeros before it is given back, since it may hold what somebody
/// typed.
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
