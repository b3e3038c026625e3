// Counts what the calling thread takes from the heap, whoever asks: this program, the library, the C
// and C++ runtimes. Needs glibc, and no sanitizer (which owns malloc).
#pragma once

#include <cstdint>

namespace oriel_internal::test {

/// False: nothing is counted in this build.
bool canCountMallocs();

/// While one lives, calls of malloc, calloc, realloc and the aligned ones on this thread are counted.
class MallocCount {
 public:
  MallocCount();
  ~MallocCount();
  MallocCount(const MallocCount&) = delete;
  MallocCount& operator=(const MallocCount&) = delete;
  uint64_t calls() const;
};

}  // namespace oriel_internal::test
