#include "terminal/interrupt.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>

#include "output.h"
#include "terminal/terminal.h"

#ifndef _WIN32
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#endif

namespace cli {
namespace {

// The handler only uses lock-free atomics and pipes, never the session, which another thread may be destroying. A
// dedicated thread cancels, under a lock.
std::atomic<int> pressed{0};
static_assert(std::atomic<int>::is_always_lock_free);

std::atomic<int> spared{0};

std::mutex watched_lock;
oriel_session* watched = nullptr;

/// Interval of repeated cancels, since the call may not have begun at the first one.
constexpr int kAgainMs = 5;

/// True if it must be repeated.
bool cancelWatched() {
  const std::lock_guard<std::mutex> hold(watched_lock);
  const bool cancels = watched != nullptr && cancelPending();
  if (cancels) {
    oriel_session_cancel(watched);
  }
  return cancels;
}

#ifndef _WIN32

struct Pipe {
  std::atomic<int> read_end{-1};
  std::atomic<int> write_end{-1};
};
Pipe to_watcher;  // one byte per Ctrl-C
Pipe to_reader;   // one byte per event that ends a wait for input

bool openPipe(bool reader_waits, Pipe* pipe) {
  int ends[2];
  if (::pipe(ends) != 0) {
    return false;
  }
  for (const int end : ends) {
    fcntl(end, F_SETFD, FD_CLOEXEC);
  }
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  if (!reader_waits) {
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  pipe->read_end.store(ends[0]);
  pipe->write_end.store(ends[1]);
  return true;
}

void writeByte(const Pipe& pipe) {
  const int error = errno;
  const char byte = 0;
  // A full pipe wakes its reader, too.
  [[maybe_unused]] const ssize_t written = ::write(pipe.write_end.load(), &byte, 1);
  errno = error;
}

void watch() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals go to other threads
  char bytes[64];
  for (;;) {
    const bool again = cancelWatched();
    pollfd ready = {to_watcher.read_end.load(), POLLIN, 0};
    if (::poll(&ready, 1, again ? kAgainMs : -1) > 0 &&
        ::read(ready.fd, bytes, sizeof(bytes)) == 0) {
      return;
    }
  }
}

#endif

}  // namespace

extern "C" {
static void onInterrupt(int) {
#ifdef _WIN32
  std::signal(SIGINT, onInterrupt);  // Windows resets the handler each time
#endif
  if (pressed.fetch_add(1) + 1 >= 3) {
    leaveTerminal();
    std::_Exit(kExitCancelled);
  }
#ifdef _WIN32
  while (cancelWatched()) {  // handlers run on their own thread there
    std::this_thread::sleep_for(std::chrono::milliseconds(kAgainMs));
  }
#else
  writeByte(to_watcher);
  writeByte(to_reader);
#endif
}
}

void catchInterrupts() {
#ifdef _WIN32
  std::signal(SIGINT, onInterrupt);
#else
  static const bool ready = [] {
    if (!openPipe(/*reader_waits=*/true, &to_watcher) ||
        !openPipe(/*reader_waits=*/false, &to_reader)) {
      return false;
    }
    try {
      std::thread(watch).detach();
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }();
  if (!ready) {
    return;  // out of descriptors or threads: Ctrl-C ends the process
  }
  struct sigaction action = {};
  action.sa_handler = onInterrupt;
  action.sa_flags = SA_RESTART;  // the pipe wakes a waiting reader
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
#endif
}

void catchTermination() {
  catchInterrupts();
#ifdef _WIN32
  std::signal(SIGTERM, onInterrupt);
#else
  struct sigaction action = {};
  sigaction(SIGINT, nullptr, &action);
  sigaction(SIGTERM, &action, nullptr);
#endif
}

int interrupts() { return pressed.load(); }

void clearInterrupts() {
  pressed.store(0);
  spared.store(0);
  clearWake();
}

bool cancelPending() { return pressed.load() > spared.load(); }
void spareCalls() { spared.store(pressed.load()); }

#ifdef _WIN32

int wakeDescriptor() { return -1; }
void clearWake() {}
void wakeReader() {}

#else

int wakeDescriptor() { return to_reader.read_end.load(); }

void clearWake() {
  char bytes[64];
  while (wakeDescriptor() >= 0 && ::read(wakeDescriptor(), bytes, sizeof(bytes)) > 0) {
  }
}

void wakeReader() { writeByte(to_reader); }

#endif

CancelOnInterrupt::CancelOnInterrupt(oriel_session* session) {
  const std::lock_guard<std::mutex> hold(watched_lock);
  watched = session;
#ifndef _WIN32
  // Ctrl-C came before there was a call to cancel.
  if (cancelPending()) {
    writeByte(to_watcher);
  }
#endif
}

CancelOnInterrupt::~CancelOnInterrupt() {
  const std::lock_guard<std::mutex> hold(watched_lock);
  watched = nullptr;
}

}  // namespace cli
