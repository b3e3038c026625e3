// A process that does not run for a while: Ctrl-Z, a frozen app, a laptop asleep. Tests only.
#pragma once

#ifndef _WIN32
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace oriel_internal::test {

/// Stops this process, all of its threads, until a child wakes it up.
inline void stopThisProcess(long milliseconds) {
  const pid_t self = getpid();
  const pid_t waker = fork();
  if (waker == 0) {  // only what is safe between fork and exit in a process of many threads
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
