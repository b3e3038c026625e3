// Counts the calling thread's heap allocations by the program, the library, and the C and C++ runtimes. Needs glibc,
// and no sanitizer (which replaces malloc).
#pragma once

#include <cstdint>

namespace oriel_internal::test {

/// False: this build cannot count.
bool canCountMallocs();

/// During its lifetime, counts malloc, calloc, realloc and the aligned variants on this thread.
class MallocCount {
 public:
  MallocCount();
  ~MallocCount();
  MallocCount(const MallocCount&) = delete;
  MallocCount& operator=(const MallocCount&) = delete;
  uint64_t calls() const;
};

}  // namespace oriel_internal::test
