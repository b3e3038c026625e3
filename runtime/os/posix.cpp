// Linux, Android, macOS and other POSIX systems.
#define _FILE_OFFSET_BITS 64  // see posix_file.h
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

#if defined(__APPLE__)
#include <TargetConditionals.h>
#include <mach/mach.h>
#if TARGET_OS_IPHONE
#include <os/proc.h>
#endif
#endif

#include "base/hash.h"
#include "os/os.h"
#include "os/posix_file.h"

namespace oriel_internal {
void preferLargePages(void* block, uint64_t bytes) {
#if defined(MADV_HUGEPAGE)
  constexpr uint64_t kLargePage = 2 << 20;
  const uint64_t begin = reinterpret_cast<uintptr_t>(block);
  const uint64_t first = (begin + kLargePage - 1) / kLargePage * kLargePage;
  const uint64_t last = (begin + bytes) / kLargePage * kLargePage;
  if (first < last) {
    (void)::madvise(static_cast<uint8_t*>(block) + (first - begin),
                    static_cast<size_t>(last - first), MADV_HUGEPAGE);
  }
#else
  (void)block;
  (void)bytes;
#endif
}

void wipePages(void* data, uint64_t bytes) {
#if defined(__linux__)  // on other systems returned pages need not come back as zeros
  constexpr uint64_t kLeast = 64 << 10;  // for smaller blocks wiping is faster
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t begin = reinterpret_cast<uintptr_t>(data);
  const uint64_t first = (begin + page - 1) / page * page;
  const uint64_t last = (begin + bytes) / page * page;
  if (last >= first + kLeast) {
    uint8_t* const block = static_cast<uint8_t*>(data);
    const auto whole = static_cast<size_t>(last - first);
    if (::madvise(block + (first - begin), whole, MADV_DONTNEED) == 0) {
      wipe(block, first - begin);
      wipe(block + (last - begin), begin + bytes - last);
      return;
    }
  }
#endif
  wipe(data, bytes);
}

// --- Memory, time, chance ------------------------------------------------------------------------

uint64_t freeMemoryBytes() {
#if defined(__linux__)
  char text[1024];  // MemAvailable is among the first lines
  if (!readText("/proc/meminfo", text, sizeof(text))) {
    return 0;
  }
  const uint64_t available = numberAfter(text, "MemAvailable:") * 1024;
  const uint64_t allowed = freeInControlGroups("");
  return available < allowed ? available : allowed;
#elif defined(__APPLE__) && TARGET_OS_IPHONE
  // An app may use only a part of the host's free memory before it is killed.
  return os_proc_available_memory();
#elif defined(__APPLE__)
  vm_statistics64_data_t statistics = {};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  const mach_port_t host = mach_host_self();
  const kern_return_t result =
      host_statistics64(host, HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&statistics), &count);
  (void)mach_port_deallocate(mach_task_self(), host);
  if (result != KERN_SUCCESS) {
    return 0;
  }
  return (static_cast<uint64_t>(statistics.free_count) + statistics.inactive_count) *
         static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
#elif defined(_SC_AVPHYS_PAGES)
  const long pages = ::sysconf(_SC_AVPHYS_PAGES);
  const long page_size = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page_size > 0
             ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_size)
             : 0;
#else
  return 0;
#endif
}

void sleepMs(double ms) {
  struct timespec wait = {};
  wait.tv_sec = static_cast<time_t>(ms / 1e3);
  wait.tv_nsec = static_cast<long>((ms - static_cast<double>(wait.tv_sec) * 1e3) * 1e6);
  (void)::nanosleep(&wait, nullptr);
}

double nowMs() {
  struct timespec now = {};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

int64_t unixSeconds() {
  struct timespec now = {};
  const bool known = ::clock_gettime(CLOCK_REALTIME, &now) == 0 && now.tv_sec > 0;
  return known ? static_cast<int64_t>(now.tv_sec) : 0;
}

uint64_t entropy() {
  uint64_t seed = 0;
  const Descriptor file(openRetrying("/dev/urandom", O_RDONLY));
  if (file.valid() &&
      ::read(file.get(), &seed, sizeof(seed)) == static_cast<ssize_t>(sizeof(seed))) {
    return seed;
  }
  // A sandbox without a random source: mixes the clock, the process id and the stack's address as in splitmix64.
  struct timespec now = {};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);
  seed = static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
  seed ^= static_cast<uint64_t>(::getpid()) << 40 ^ reinterpret_cast<uintptr_t>(&now);
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9u;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebu;
  return seed ^ (seed >> 31);
}

// --- Shared libraries ----------------------------------------------------------------------------

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) {
    (void)::dlclose(handle_);
  }
}

bool SharedLibrary::open(const char* name) {
  if (handle_ != nullptr) {
    (void)::dlclose(handle_);
  }
  handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  return handle_ != nullptr;
}

void* SharedLibrary::symbol(const char* name) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

}  // namespace oriel_internal
