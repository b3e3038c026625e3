#include "terminal/terminal.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#ifdef _WIN32
#include <io.h>
#else
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

#include "terminal/interrupt.h"
#endif

#include "system.h"
#include "terminal/reply_view.h"

namespace cli {
namespace {

bool isDumb() { return variable("TERM") == "dumb"; }

std::string styled(const char* code, const std::string& text) {
  return takesStyles(Stream::kErr) ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
}

}  // namespace

bool takesEscapes() { return isTerminal(Stream::kErr) && !isDumb(); }

bool takesStyles(Stream stream) {
  return isTerminal(stream) && !isDumb() && variable("NO_COLOR").empty();
}

bool drawsBlocks() {
  std::string locale;
#ifndef _WIN32
  for (const char* const name : {"LANG", "LC_CTYPE", "LC_ALL"}) {  // in ascending precedence
    const std::string value = variable(name);
    locale = value.empty() ? locale : value;
  }
#endif
  const auto says = [&](const char* name) { return locale.find(name) != std::string::npos; };
  const bool unicode =
      locale.empty() || says("UTF-8") || says("utf-8") || says("UTF8") || says("utf8");
  return unicode && !isDumb();
}

void tell(std::string_view text) noexcept {
  static const bool shown = isTerminal(Stream::kErr);
  thread_local ShownBefore before;
  if (shown) {
    (void)writeShown(text, stderr, &before);
  } else {
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  std::fflush(stderr);
}

std::string dim(const std::string& text) { return styled("2", text); }

std::string bold(const std::string& text) { return styled("1", text); }

std::string bar(double share, unsigned columns) {
  if (!drawsBlocks()) {
    return {};
  }
  static const char* const kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double clamped = std::clamp(share, 0.0, 1.0);
  auto eighths = static_cast<unsigned>(std::lround(clamped * columns * 8));
  if (clamped > 0 && eighths == 0) {
    eighths = 1;
  }
  std::string text;
  for (unsigned i = 0; i < eighths / 8; ++i) {
    text += "█";
  }
  return text + kEighths[eighths % 8];
}

std::string terminalSafe(std::string_view text) {
  std::u32string safe;
  safe.reserve(text.size());
  for (const char32_t c : charactersOf(text)) {
    if (c == 0x2028 || c == 0x2029) {  // line and paragraph separators
      safe += U' ';
    } else if (c == '\n' || c == '\t' || (c >= 0x20 && (c < 0x7F || c >= 0xA0))) {
      safe += c;
    }
  }
  return utf8Of(safe);
}

std::string oneLine(std::string_view text) {
  std::string line = terminalSafe(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

namespace {

/// "  120 of 1,500 tokens  45 tokens/s  0:30 left", as far as known.
std::string amountText(ProgressUnit unit, uint64_t done, uint64_t total, double seconds) {
  const bool bytes = unit == ProgressUnit::kBytes;
  const std::string name = bytes ? "" : unit == ProgressUnit::kTokens ? " tokens" : " lines";
  const auto amount = [&](uint64_t count) { return bytes ? formatSize(count) : grouped(count); };
  std::string text;
  if (unit != ProgressUnit::kShare) {
    text = "  " + amount(done) + (total != 0 ? " of " + amount(total) : "") + name;
  }
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  if (seconds < 1 || rate <= 0) {
    return text;
  }
  if (unit != ProgressUnit::kShare) {
    text += "  " + amount(static_cast<uint64_t>(rate)) + name + "/s";
  }
  const double left = total > done ? static_cast<double>(total - done) / rate : 0;
  return total == 0
             ? text
             : text + "  " + durationText(static_cast<uint64_t>(std::min(left + 1, 1e6))) + " left";
}

}  // namespace

ProgressBar::ProgressBar(std::string label, std::chrono::milliseconds quiet, ProgressUnit unit)
    : label_(std::move(label)), unit_(unit), quiet_(quiet), enabled_(takesEscapes()) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::show(uint64_t done, uint64_t total) {
  constexpr std::chrono::milliseconds kBetween(100);
  const auto now = std::chrono::steady_clock::now();
  const auto took = now - start_;
  if (!enabled_ || took < quiet_ || (shown_ && now - shown_at_ < kBetween && done < total)) {
    return;
  }
  shown_ = true;
  shown_at_ = now;
  const double share =
      total == 0 ? 0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  char number[16] = "";
  if (total != 0) {
    std::snprintf(number, sizeof(number), " %3d%%", static_cast<int>(share * 100));
  }
  const size_t columns = terminalColumns();
  const std::string head = label_ + number;
  std::string amount = amountText(unit_, done, total, std::chrono::duration<double>(took).count());
  while (!amount.empty() && head.size() + amount.size() >= columns) {
    amount.erase(amount.rfind("  "));
  }
  constexpr size_t kMostCells = 24;
  constexpr size_t kLeastCells = 8;
  const size_t room = columns - std::min(columns, head.size() + amount.size() + 2);
  const size_t cells = total == 0 || room < kLeastCells ? 0 : std::min(room, kMostCells);
  tell("\r\033[K" + head + " " + dim(bar(share, static_cast<unsigned>(cells))) + amount);
}

void ProgressBar::clear() {
  if (shown_) {
    tell("\r\033[K");
    shown_ = false;
  }
}

}  // namespace cli

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
#include <csignal>
#include <cstddef>
#include <initializer_list>

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

namespace cli {

#ifdef _WIN32

long readStdin(char* buffer, size_t capacity) {
  return _read(0, buffer, static_cast<unsigned>(capacity));
}

bool stdinWaits(int) { return false; }  // unknown for consoles
std::string takeUnfinishedLine() { return {}; }

#else

long readStdin(char* buffer, size_t capacity) {
  // Ctrl-C may arrive on another thread, so the wait includes its pipe.
  pollfd sources[] = {{STDIN_FILENO, POLLIN, 0}, {wakeDescriptor(), POLLIN, 0}};
  while (poll(sources, 2, -1) < 0) {
    if (errno != EINTR) {
      return -1;
    }
  }
  if (sources[1].revents != 0) {
    clearWake();
    errno = EINTR;
    return -1;
  }
  return static_cast<long>(read(STDIN_FILENO, buffer, capacity));
}

bool stdinWaits(int milliseconds) {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, milliseconds) > 0 && (input.revents & (POLLIN | POLLHUP)) != 0;
}

std::string takeUnfinishedLine() {
  termios usual;
  if (tcgetattr(STDIN_FILENO, &usual) != 0) {
    return {};
  }
  termios at_once = usual;
  at_once.c_lflag &= ~static_cast<tcflag_t>(ICANON);
  at_once.c_cc[VMIN] = 0;
  at_once.c_cc[VTIME] = 0;
  std::string text;
  if (tcsetattr(STDIN_FILENO, TCSANOW, &at_once) == 0) {
    char buffer[4096];
    const ssize_t count = read(STDIN_FILENO, buffer, sizeof(buffer));
    text.assign(buffer, static_cast<size_t>(std::max<ssize_t>(count, 0)));
    tcsetattr(STDIN_FILENO, TCSANOW, &usual);
  }
  return text;
}

#endif

}  // namespace cli
