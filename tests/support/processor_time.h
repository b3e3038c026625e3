// Measures processor time, so that other load on the machine does not count.
#pragma once

#include <ctime>

namespace oriel_internal::test {

/// Processor time of all threads.
template <typename Work>
double processorSeconds(const Work& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace oriel_internal::test
