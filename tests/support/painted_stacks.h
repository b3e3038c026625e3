// Stack bytes of public functions.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace oriel_internal::test {

// Measures the stack that each public function uses on the calling thread.

struct MeasuredCall {
  const char* function;
  std::atomic<size_t> deepest_bytes{0};  ///< including its callbacks; 0: not called
};
/// All of oriel.h, sessions.h and tools.h.
extern MeasuredCall calls_measured[];
extern const size_t calls_measured_count;

/// Paints the stack below it, and inspects it at the end. Nested gauges do not measure.
class CallGauge {
 public:
  explicit CallGauge(MeasuredCall* call);
  ~CallGauge();
  CallGauge(const CallGauge&) = delete;
  CallGauge& operator=(const CallGauge&) = delete;

 private:
  MeasuredCall* const call_;
  unsigned char* lowest_ = nullptr;
  unsigned char* end_ = nullptr;
};

// Measures the stack depth of threads: paints stacks before the run and inspects them afterwards.

/// A thread's stack below the frame that calls its body; excludes thread-local data and the guard.
struct StackUse {
  size_t room_bytes = 0;
  size_t used_bytes = 0;
};

/// Threads created by this program's objects (not by a driver) with pthread_create, and refused ones.
struct ThreadCount {
  uint32_t made = 0;
  uint32_t refused = 0;
};
ThreadCount countThreads();
/// The ended thread with the deepest stack, among those with `least_bytes` to `most_bytes`; zeros: none.
StackUse deepestThread(size_t least_bytes, size_t most_bytes);

}  // namespace oriel_internal::test
