// How much stack each public function takes from the thread that calls it.
#pragma once

#include <atomic>
#include <cstddef>

namespace oriel_internal::test {

struct MeasuredCall {
  const char* function;
  std::atomic<size_t> deepest_bytes{0};  ///< with what its callbacks take; 0: it was not called
};
/// All of oriel.h, sessions.h and tools.h.
extern MeasuredCall calls_measured[];
extern const size_t calls_measured_count;

/// While it lives, the stack below it is painted; then it is looked at. Of two, one inside the
/// other's call, neither measures.
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
