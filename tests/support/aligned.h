// 64-byte aligned blocks, as required of an app's allocator. Not aligned_alloc, which Windows lacks.
#pragma once

#include <cstddef>
#include <new>

namespace oriel_internal::test {

/// nullptr: out of memory.
inline void* alignedBlock(size_t bytes) {
  return ::operator new (bytes, std::align_val_t{64}, std::nothrow);
}
inline void freeAligned(void* block) { ::operator delete (block, std::align_val_t{64}); }

}  // namespace oriel_internal::test
