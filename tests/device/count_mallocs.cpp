#include "device/count_mallocs.h"

#include <cerrno>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ORIEL_COUNTS_MALLOCS 0
#elif defined(__GLIBC__)
#define ORIEL_COUNTS_MALLOCS 1
#else
#define ORIEL_COUNTS_MALLOCS 0
#endif

namespace {

thread_local bool counting = false;
thread_local uint64_t counted = 0;

}  // namespace

#if ORIEL_COUNTS_MALLOCS
// These definitions override the C library's in the whole process; below are glibc's internal names.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  counted += counting;
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  counted += counting;
  return __libc_calloc(count, bytes);
}
void* realloc(void* block, size_t bytes) {
  counted += counting;
  return __libc_realloc(block, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  counted += counting;
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** block, size_t alignment, size_t bytes) {
  *block = memalign(alignment, bytes);
  return *block == nullptr ? ENOMEM : 0;
}
}
#endif

namespace oriel_internal::test {

bool canCountMallocs() { return ORIEL_COUNTS_MALLOCS != 0; }

MallocCount::MallocCount() {
  counted = 0;
  counting = true;
}
MallocCount::~MallocCount() { counting = false; }
uint64_t MallocCount::calls() const { return counted; }

}  // namespace oriel_internal::test
