// A suspended process: Ctrl-Z, a frozen app, a sleeping laptop. Tests only.
#pragma once

#ifndef _WIN32
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace oriel_internal::test {

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

}  // namespace oriel_internal::test
#endif
