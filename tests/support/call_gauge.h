// Measures the stack that each public function uses on the calling thread.
#pragma once

#include <atomic>
#include <cstddef>

namespace oriel_internal::test {

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

}  // namespace oriel_internal::test
