// Ctrl-C while sessions come and go: none is cancelled that is no longer there, whichever thread the signal comes to.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include <pthread.h>

#include "apps/oriel/interrupt.h"
#include "apps/oriel/terminal_modes.h"

struct oriel_session {
  std::atomic<bool> alive{false};
};

namespace {

std::atomic<int> cancels{0};
std::atomic<int> too_late{0};

}  // namespace

// Instead of the library's: as slow as it takes to be overtaken.
void oriel_session_cancel(oriel_session* session) {
  for (int i = 0; i < 20; ++i) {
    too_late += session->alive.load() ? 0 : 1;
    std::this_thread::sleep_for(std::chrono::microseconds(5));
  }
  ++cancels;
}

void cli::leaveTerminal() {}

int main() {
  cli::catchInterrupts();
  const pthread_t sessions = pthread_self();
  std::atomic<bool> done{false};
  // Signals to this thread and to the other one, which takes no part in anything.
  std::thread signals([&] {
    for (int i = 0; !done.load(); ++i) {
      pthread_kill(i % 2 == 0 ? sessions : pthread_self(), SIGINT);
      // The next one only when this one has come: two together end the program, as two Ctrl-C do.
      while (cli::interrupts() == 0 && !done.load()) {
        std::this_thread::yield();
      }
      cli::clearInterrupts();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  // Never destroyed, so that who comes too late finds it dead and not another one.
  static oriel_session session;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < end) {
    session.alive.store(true);
    {
      const cli::CancelOnInterrupt cancel(&session);
      std::this_thread::sleep_for(std::chrono::microseconds(30));
    }
    session.alive.store(false);
    std::this_thread::sleep_for(std::chrono::microseconds(30));
  }
  done.store(true);
  signals.join();
  std::printf("%d cancels, %d looks at a session that was gone\n", cancels.load(), too_late.load());
  return cancels.load() > 0 && too_late.load() == 0 ? 0 : 1;
}
