// Keeps freed memory in the process. Tests only.
#pragma once

#include <cstdlib>  // defines __GLIBC__
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace oriel_internal::test {

/// Tests load and free models many times: getting zeroed pages from the system each time takes a third of the tests'
/// time.
inline void keepFreedMemory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 1 << 24);
#endif
}

}  // namespace oriel_internal::test
