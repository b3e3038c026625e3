#include "support/painted_stacks.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>

namespace oriel_internal::test {
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
