#include "terminal/standard_input.h"

#ifdef _WIN32
#include <io.h>
#else
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "terminal/interrupt.h"
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
