// For programs linked with -Wl,--wrap=pthread_create.
#include "support/painted_stacks.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

namespace oriel_internal::test {
namespace {

constexpr unsigned char kPaint = 0xA5;
// Painting larger stacks would use memory: their pages are returned to the system instead and read as zeros.
constexpr size_t kMostPainted = size_t{1} << 20;
// Reserved for the painting code, below its frame.
constexpr size_t kOwnBytes = 1024;

struct Start {
  void* (*body)(void* user);
  void* user;
};

struct Known {
  std::mutex mutex;
  ThreadCount count;
  std::vector<StackUse> ended;
};
Known& known() {
  static Known* const all = new Known;  // outlives threads that end with the program
  return *all;
}

bool stackOfThisThread(unsigned char** lowest) {
  pthread_attr_t attributes;
  void* address = nullptr;
  size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
    return false;
  }
  const bool ok = pthread_attr_getstack(&attributes, &address, &bytes) == 0;
  (void)pthread_attr_destroy(&attributes);
  *lowest = static_cast<unsigned char*>(address);
  return ok;
}

// NOLINTNEXTLINE(misc-unused-parameters): not inlined, so that its callees are below the painted part
__attribute__((noinline, no_sanitize("address", "thread"))) void* runPainted(const Start& start,
                                                                             StackUse* use) {
  unsigned char* lowest = nullptr;
  if (!stackOfThisThread(&lowest)) {
    return start.body(start.user);
  }
  unsigned char* const here = static_cast<unsigned char*>(__builtin_frame_address(0));
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  use->room_bytes = static_cast<size_t>(here - lowest);
  const bool painted = use->room_bytes <= kMostPainted;
  const size_t bytes =
      painted ? use->room_bytes - kOwnBytes : (use->room_bytes - kOwnBytes) / page * page;
  const unsigned char colour = painted ? kPaint : 0;
  if (painted) {
    // A manual loop: a sanitizer's memset would check for known frames.
    for (volatile unsigned char* at = lowest; at < lowest + bytes; ++at) {
      *at = colour;
    }
  } else {
    (void)madvise(lowest, bytes, MADV_DONTNEED);
  }
  void* const result = start.body(start.user);
  const volatile unsigned char* at = lowest;
  while (at < lowest + bytes && *at == colour) {
    ++at;
  }
  use->used_bytes = static_cast<size_t>(here - at);
  return result;
}

void* threadMain(void* argument) {
  const Start start = *static_cast<Start*>(argument);
  delete static_cast<Start*>(argument);
  StackUse use;
  void* const result = runPainted(start, &use);
  const std::lock_guard<std::mutex> lock(known().mutex);
  known().ended.push_back(use);
  return result;
}

}  // namespace

extern "C" {
// NOLINTNEXTLINE(bugprone-reserved-identifier): the linker's names
int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                          void* user);
// NOLINTNEXTLINE(bugprone-reserved-identifier)
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                          void* user) {
  Start* const start = new Start{body, user};
  const int error = __real_pthread_create(thread, attributes, threadMain, start);
  const std::lock_guard<std::mutex> lock(known().mutex);
  if (error != 0) {
    delete start;
    ++known().count.refused;
  } else {
    ++known().count.made;
  }
  return error;
}
}

ThreadCount countThreads() {
  const std::lock_guard<std::mutex> lock(known().mutex);
  return known().count;
}

StackUse deepestThread(size_t least_bytes, size_t most_bytes) {
  const std::lock_guard<std::mutex> lock(known().mutex);
  StackUse deepest;
  for (const StackUse& use : known().ended) {
    if (use.room_bytes >= least_bytes && use.room_bytes <= most_bytes &&
        use.used_bytes > deepest.used_bytes) {
      deepest = use;
    }
  }
  return deepest;
}

namespace {

constexpr unsigned char kCallPaint = 0xA5;
constexpr size_t kPainted = size_t{768} << 10;
// Reserved for the painting code.
constexpr size_t kGaugeBytes = 1024;

thread_local uint32_t depth = 0;
thread_local bool has_inner = false;  // a callback of the call makes calls
thread_local unsigned char* lowest_of_thread = nullptr;

unsigned char* lowestOfThread() {
  if (lowest_of_thread == nullptr) {
    pthread_attr_t attributes;
    void* address = nullptr;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      (void)pthread_attr_getstack(&attributes, &address, &bytes);
      (void)pthread_attr_destroy(&attributes);
    }
    lowest_of_thread = static_cast<unsigned char*>(address);
  }
  return lowest_of_thread;
}

}  // namespace

__attribute__((noinline)) CallGauge::CallGauge(MeasuredCall* call) : call_(call) {
  unsigned char* const lowest = lowestOfThread();
  has_inner = depth != 0;
  if (depth++ != 0 || lowest == nullptr) {
    return;
  }
  end_ = static_cast<unsigned char*>(__builtin_frame_address(0));
  lowest_ = end_ - std::min(kPainted, static_cast<size_t>(end_ - lowest));
  std::memset(lowest_, kCallPaint, static_cast<size_t>(end_ - lowest_) - kGaugeBytes);
}

__attribute__((noinline)) CallGauge::~CallGauge() {
  --depth;
  if (end_ == nullptr || has_inner) {
    return;
  }
  const unsigned char* at = lowest_;
  while (at < end_ && *at == kCallPaint) {
    ++at;
  }
  const size_t used = static_cast<size_t>(end_ - at);
  size_t deepest = call_->deepest_bytes.load();
  while (deepest < used && !call_->deepest_bytes.compare_exchange_weak(deepest, used)) {
  }
}

}  // namespace oriel_internal::test
