// Device timeouts of tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace oriel_internal::test {

/// For the option device_timeout_ms: the library's 60 s times the environment variable ORIEL_TEST_PATIENCE. In an
/// emulator a driver takes minutes to compile kernels at the first dispatch.
inline uint32_t deviceTimeoutMs() {
  const char* text = std::getenv("ORIEL_TEST_PATIENCE");
  const long times = text == nullptr ? 1 : std::strtol(text, nullptr, 10);
  return 60000 * static_cast<uint32_t>(std::clamp(times, 1L, 1000L));
}

// Measures processor time, so that other load on the machine does not count.

/// Processor time of all threads.
template <typename Work>
double processorSeconds(const Work& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace oriel_internal::test
