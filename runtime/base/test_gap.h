// Places where another thread may run between two steps of this one. Tests widen these gaps; builds without tests
// contain none.
#pragma once

#if defined(ORIEL_TEST_GAPS)
#include <atomic>
#endif

namespace oriel_internal {

#if defined(ORIEL_TEST_GAPS)
/// Called at each such place, on any thread. May be null.
inline std::atomic<void (*)()> test_gap{nullptr};

inline void testGap() {
  if (void (*const widen)() = test_gap.load(std::memory_order_relaxed); widen != nullptr) {
    widen();
  }
}
#else
inline void testGap() {}
#endif

}  // namespace oriel_internal
