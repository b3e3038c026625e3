// Ctrl-C while sessions are created and destroyed: a destroyed session is never cancelled, on any thread.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <thread>

#include <pthread.h>

#include "apps/oriel/terminal/interrupt.h"
#include "apps/oriel/terminal/terminal.h"

struct oriel_session {
  std::atomic<bool> alive{false};
};

namespace {

std::atomic<int> cancels{0};
std::atomic<int> too_late{0};

}  // namespace

// Replaces the library's: slow enough to be overtaken.
void oriel_session_cancel(oriel_session* session) {
  for (int i = 0; i < 20; ++i) {
    too_late += session->alive.load() ? 0 : 1;
    std::this_thread::sleep_for(std::chrono::microseconds(5));
  }
  ++cancels;
}

bool cli::leaveTerminal() { return false; }

namespace {

/// Within two seconds.
bool becomes(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000 && !condition(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

/// Calls that begin after a press are cancelled until spareCalls() or clearInterrupts().
bool cancelsAgainUntilSpared() {
  static oriel_session session;
  session.alive.store(true);
  std::raise(SIGINT);
  bool sound = true;
  {
    const cli::CancelOnInterrupt pressed_before(&session);
    sound = becomes([] { return cancels.load() >= 3; }) && cli::cancelPending();
    cli::spareCalls();
    sound = sound && !cli::cancelPending() && cli::interrupts() == 1;
  }
  {
    const cli::CancelOnInterrupt spared(&session);
    const int before = cancels.load();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    sound = sound && cancels.load() == before;
    cli::clearInterrupts();
    std::raise(SIGINT);
    sound = sound && becomes([before] { return cancels.load() >= before + 3; });
    cli::clearInterrupts();
  }
  session.alive.store(false);
  return sound;
}

}  // namespace

int main() {
  cli::catchInterrupts();
  if (!cancelsAgainUntilSpared()) {
    std::printf("Ctrl-C is not remembered, or not spared\n");
    return 1;
  }
  const pthread_t sessions = pthread_self();
  std::atomic<bool> done{false};
  // Signals this thread and another idle one.
  std::thread signals([&] {
    for (int i = 0; !done.load(); ++i) {
      pthread_kill(i % 2 == 0 ? sessions : pthread_self(), SIGINT);
      // The next signal only after this one has arrived: two together end the program, like two Ctrl-C.
      while (cli::interrupts() == 0 && !done.load()) {
        std::this_thread::yield();
      }
      cli::clearInterrupts();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  // Never destroyed, so that a late call finds it marked dead.
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
