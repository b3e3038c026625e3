#include <pthread.h>
#include <sched.h>
#if defined(__GLIBC__)
#include <dlfcn.h>
#include <link.h>
#endif
#include <unistd.h>
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>

#include "os/os.h"

namespace oriel_internal {

static_assert(sizeof(pthread_t) <= sizeof(uintptr_t), "a handle holds a pthread_t");

struct ThreadEntry {
  static void* run(void* thread) {
    Thread* self = static_cast<Thread*>(thread);
    self->body_(self->user_);
    return nullptr;
  }
};

namespace {

// Stack bytes that the C library uses itself:
//  - glibc (nptl/allocatestack.c) puts the thread descriptor and the static TLS of all objects into
//    the requested stack, before 2.27 also the guard page. It refuses a stack below
//    __pthread_get_minstack().
//  - musl (src/thread/pthread_create.c) and bionic (libc/bionic/pthread_create.cpp) add descriptor,
//    TLS and guard to the requested size.
//  - Apple's libpthread adds descriptor and guard; dyld takes TLS from the heap.
//  - Emscripten (system/lib/pthread/pthread_create.c) adds descriptor and TLS, without a guard.
//  - Windows takes TLS from the process's heap (win32_thread.cpp).
#if defined(__GLIBC__)
int addThreadLocals(dl_phdr_info* object, size_t, void* sum) {
  for (size_t i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_TLS) {
      *static_cast<size_t*>(sum) += segment.p_memsz + segment.p_align;
    }
  }
  return 0;
}

size_t takenFromStack(const pthread_attr_t& attributes) {
  // The exact figure, including GLIBC_TUNABLES for libraries opened later. Not a public function: it may be missing,
  // and always is in a static program.
  using Minimum = size_t (*)(const pthread_attr_t*);
  if (void* const symbol = dlsym(RTLD_DEFAULT, "__pthread_get_minstack"); symbol != nullptr) {
    return reinterpret_cast<Minimum>(symbol)(&attributes);
  }
  // Descriptor (2.3 KiB) and glibc's default reserve (1.7 KiB) fit into 16 KiB. Libraries opened with dlopen are
  // counted, although their TLS is on the heap.
  size_t bytes = 16384 + static_cast<size_t>(std::max(sysconf(_SC_PAGESIZE), 0l));
  (void)dl_iterate_phdr(addThreadLocals, &bytes);
  return bytes;
}
#else
size_t takenFromStack(const pthread_attr_t&) { return 0; }
#endif

}  // namespace

bool Thread::start(void (*body)(void* user), void* user, uint32_t stack_bytes) {
  body_ = body;
  user_ = user;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) {
    return false;
  }
  const long page = sysconf(_SC_PAGESIZE);
  const size_t granularity = page > 0 ? static_cast<size_t>(page) : 65536;
  size_t bytes = std::max<size_t>(stack_bytes, PTHREAD_STACK_MIN) + takenFromStack(attributes);
  bytes = (bytes + granularity - 1) / granularity * granularity;
  pthread_t handle = {};
  running_ = pthread_attr_setstacksize(&attributes, bytes) == 0 &&
             pthread_create(&handle, &attributes, &ThreadEntry::run, this) == 0;
  (void)pthread_attr_destroy(&attributes);
  std::memcpy(&handle_, &handle, sizeof(handle));
  return running_;
}

void Thread::join() {
  if (running_) {
    pthread_t handle;
    std::memcpy(&handle, &handle_, sizeof(handle));
    (void)pthread_join(handle, nullptr);
    running_ = false;
  }
}

#if defined(__linux__)
namespace {

// Identifies a core by the lowest processor on it.
int coreOf(int processor) {
  char path[96];
  std::snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                processor);
  int first = processor;
  if (FILE* file = std::fopen(path, "re"); file != nullptr) {
    if (std::fscanf(file, "%d", &first) != 1) {
      first = processor;
    }
    std::fclose(file);
  }
  return first;
}

// Calls visit(core number, processor) for every allowed processor, cores numbered from 0.
template <typename Visit>
uint32_t visitCores(const Visit& visit) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(getpid(), sizeof(allowed), &allowed) != 0) {
    return 0;
  }
  int seen[CPU_SETSIZE];
  uint32_t cores = 0;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &allowed)) {
      continue;
    }
    const int core = coreOf(processor);
    uint32_t number = 0;
    while (number < cores && seen[number] != core) {
      ++number;
    }
    if (number == cores) {
      seen[cores++] = core;
    }
    visit(number, processor);
  }
  return cores;
}

}  // namespace

uint32_t allowedProcessors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(getpid(), sizeof(allowed), &allowed) != 0) {
    return 1;
  }
  return static_cast<uint32_t>(std::max(CPU_COUNT(&allowed), 1));
}

uint32_t allowedCores() {
  return std::max(visitCores([](uint32_t, int) {}), 1u);
}

void pinToCore(uint32_t index) {
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  (void)visitCores([&](uint32_t core, int processor) {
    if (core == index) {
      CPU_SET(processor, &wanted);
    }
  });
  if (CPU_COUNT(&wanted) > 0) {
    (void)sched_setaffinity(0, sizeof(wanted), &wanted);  // of the calling thread
  }
}

uint32_t currentCore() {
  const int here = sched_getcpu();
  uint32_t found = UINT32_MAX;
  (void)visitCores([&](uint32_t core, int processor) {
    if (processor == here) {
      found = core;
    }
  });
  return found;
}
#else
uint32_t allowedProcessors() {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<uint32_t>(online) : 1;
}
uint32_t allowedCores() { return allowedProcessors(); }
void pinToCore(uint32_t) {}
uint32_t currentCore() { return UINT32_MAX; }
#endif

#if defined(__aarch64__) && defined(__linux__)
bool processorHasDotProducts() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }
#elif defined(__aarch64__) && defined(__APPLE__)
bool processorHasDotProducts() {
  int has = 0;
  size_t bytes = sizeof(has);
  return sysctlbyname("hw.optional.arm.FEAT_DotProd", &has, &bytes, nullptr, 0) == 0 && has != 0;
}
#else
bool processorHasDotProducts() { return false; }
#endif

void yieldProcessor() { (void)sched_yield(); }

uintptr_t threadId() {
  const pthread_t self = pthread_self();
  uintptr_t id = 0;
  std::memcpy(&id, &self, sizeof(self));
  return id;
}

}  // namespace oriel_internal
