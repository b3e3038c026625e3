#include "terminal/terminal_modes.h"

#ifdef _WIN32

namespace cli {

bool takeTerminal() { return false; }
bool leaveTerminal() { return false; }
void quietTerminal() {}
void keepEditingModes() {}
bool terminalResized() { return false; }
bool terminalResumed() { return false; }

}  // namespace cli

#else

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <initializer_list>

#include <termios.h>
#include <unistd.h>

#include "terminal/interrupt.h"

namespace cli {
namespace {

// Read by signal handlers on any thread: each set of modes is written once, before its pointer.
termios usual_modes;
termios quiet_modes;
termios editing_modes;
bool editing_known = false;
std::atomic<const termios*> wanted{nullptr};  // null: the terminal is not taken
std::atomic<bool> resized{false};
std::atomic<bool> resumed{false};
static_assert(std::atomic<const termios*>::is_always_lock_free);

/// Requests paste marks; terminals without them show nothing.
constexpr char kMarkPastes[] = "\033[?2004h";
constexpr char kDoNotMarkPastes[] = "\033[?2004l";

template <size_t N>
void sendMode(const char (&text)[N]) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, N - 1);
}

void setModes(const termios& modes) {
  while (tcsetattr(STDIN_FILENO, TCSANOW, &modes) != 0 && errno == EINTR) {
  }
}

void giveBack() {
  if (wanted.load() != nullptr) {
    sendMode(kDoNotMarkPastes);
    setModes(usual_modes);
  }
}

void setHandler(int signal, void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

bool isDefault(int signal) {
  struct sigaction action = {};
  return sigaction(signal, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
         action.sa_handler == SIG_DFL;
}

}  // namespace

extern "C" {

static void onStop(int signal) {
  const int error = errno;
  giveBack();
  setHandler(signal, SIG_DFL, 0);
  sigset_t stop;
  sigset_t before;
  sigemptyset(&stop);
  sigaddset(&stop, signal);
  raise(signal);
  pthread_sigmask(SIG_UNBLOCK, &stop, &before);  // the process stops here
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  setHandler(signal, onStop, SA_RESTART);
  errno = error;
}

static void onContinue(int) {
  const int error = errno;
  const termios* const modes = wanted.load();
  // In the background the terminal belongs to another process; `fg` continues the program again.
  if (modes != nullptr && tcgetpgrp(STDIN_FILENO) == getpgrp()) {
    setModes(*modes);
    sendMode(kMarkPastes);
  }
  resumed.store(true);
  wakeReader();
  errno = error;
}

static void onResize(int) {
  resized.store(true);
  wakeReader();
}

/// For fatal signals: restores the modes, then lets the default action end the process.
static void onEnd(int signal) {
  giveBack();
  raise(signal);
}
}

bool takeTerminal() {
  if (tcgetattr(STDIN_FILENO, &usual_modes) != 0) {
    return false;
  }
  quiet_modes = usual_modes;
  quiet_modes.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  quiet_modes.c_lflag |= NOFLSH;
  // Distinguishes Enter from Ctrl-J. Ctrl-S and Ctrl-Q are unchanged.
  quiet_modes.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR | IGNCR);
  quiet_modes.c_cc[VMIN] = 1;
  quiet_modes.c_cc[VTIME] = 0;
  for (const int signal : {SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE}) {
    if (isDefault(signal)) {
      setHandler(signal, onEnd, static_cast<int>(SA_RESETHAND));
    }
  }
  if (isDefault(SIGTSTP)) {  // otherwise the shell has no job control
    setHandler(SIGTSTP, onStop, SA_RESTART);
  }
  setHandler(SIGCONT, onContinue, SA_RESTART);
  setHandler(SIGWINCH, onResize, SA_RESTART);
  quietTerminal();
  sendMode(kMarkPastes);
  return true;
}

bool leaveTerminal() {
  giveBack();
  return wanted.exchange(nullptr) != nullptr;
}

void quietTerminal() {
  wanted.store(&quiet_modes);
  setModes(quiet_modes);
}

void keepEditingModes() {
  if (!editing_known) {
    editing_known = tcgetattr(STDIN_FILENO, &editing_modes) == 0;
  }
  if (editing_known) {
    wanted.store(&editing_modes);
  }
}

bool terminalResized() { return resized.exchange(false); }

bool terminalResumed() { return resumed.exchange(false); }

}  // namespace cli

#endif
