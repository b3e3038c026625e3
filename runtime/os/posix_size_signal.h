// On POSIX systems: exceeding the file size limit becomes an error instead of killing the process.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cerrno>

namespace oriel_internal {

/// During its lifetime a write beyond RLIMIT_FSIZE gives EFBIG. Blocks the signal that the system also sends to the
/// writing thread, which kills processes by default.
class SizeSignal {
 public:
  SizeSignal() {
    sigset_t before;
    (void)::sigemptyset(&only_);
    (void)::sigaddset(&only_, SIGXFSZ);
    blocked_ =
        ::pthread_sigmask(SIG_BLOCK, &only_, &before) == 0 && ::sigismember(&before, SIGXFSZ) == 0;
  }
  ~SizeSignal() {
    if (!blocked_) {
      return;
    }
    const int error = errno;
    sigset_t pending;
    int taken = 0;
    if (::sigpending(&pending) == 0 && ::sigismember(&pending, SIGXFSZ) == 1) {
      (void)::sigwait(&only_, &taken);
    }
    (void)::pthread_sigmask(SIG_UNBLOCK, &only_, nullptr);
    errno = error;
  }
  SizeSignal(const SizeSignal&) = delete;
  SizeSignal& operator=(const SizeSignal&) = delete;

 private:
  sigset_t only_;
  bool blocked_ = false;
};

}  // namespace oriel_internal
