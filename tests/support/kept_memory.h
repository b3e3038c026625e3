// Memory that is freed stays with the process. Tests only.
#pragma once

#include <cstdlib>  // so that __GLIBC__ is known
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace oriel_internal::test {

/// Models are loaded and freed many times over: what the system gives and takes back each time, page by page and filled
/// with zeros, takes a third of the time of all these tests.
inline void keepFreedMemory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 1 << 24);
#endif
}

}  // namespace oriel_internal::test
