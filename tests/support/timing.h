// Time in tests: device timeouts, processor time and suspended processes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#ifndef _WIN32
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#endif

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

#ifndef _WIN32
// A suspended process: Ctrl-Z, a frozen app, a sleeping laptop. Tests only.

/// Stops all threads of this process until a child wakes it.
inline void stopThisProcess(long milliseconds) {
  const pid_t self = getpid();
  const pid_t waker = fork();
  // only functions that are safe between fork and exit in a multithreaded process
  if (waker == 0) {
    const timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    (void)nanosleep(&time, nullptr);
    (void)kill(self, SIGCONT);
    _exit(0);
  }
  if (waker > 0) {
    (void)kill(self, SIGSTOP);
    (void)waitpid(waker, nullptr, 0);
  }
}
#endif

}  // namespace oriel_internal::test
