#include "interrupt.h"

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "failure.h"

namespace cli {
namespace {

// A signal handler reaches nothing but globals; lock-free atomics are safe in one.
std::atomic<oriel_session*> watched{nullptr};
std::atomic<int> pressed{0};
static_assert(std::atomic<oriel_session*>::is_always_lock_free);
static_assert(std::atomic<int>::is_always_lock_free);

}  // namespace

extern "C" {
static void onInterrupt(int) {
#ifdef _WIN32
  std::signal(SIGINT, onInterrupt);  // Windows forgets the handler each time
#endif
  if (pressed.fetch_add(1) + 1 >= 3) {
    std::_Exit(kExitCancelled);
  }
  if (oriel_session* session = watched.load()) {
    oriel_session_cancel(session);
  }
}
}

void catchInterrupts() {
#ifdef _WIN32
  std::signal(SIGINT, onInterrupt);
#else
  // Without SA_RESTART: a read that waits for a line returns.
  struct sigaction action = {};
  action.sa_handler = onInterrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
#endif
}

int interrupts() { return pressed.load(); }

void clearInterrupts() { pressed.store(0); }

CancelOnInterrupt::CancelOnInterrupt(oriel_session* session) {
  watched.store(session);
  // One that came before there was anything to cancel.
  if (interrupts() != 0) {
    oriel_session_cancel(session);
  }
}

CancelOnInterrupt::~CancelOnInterrupt() { watched.store(nullptr); }

}  // namespace cli
