#include "models/download.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include "models/catalogue.h"
#include "output.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"

#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include <filesystem>
#else
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#endif

#ifndef _WIN32
extern char** environ;  // NOLINT: POSIX has programs declare it
#endif

namespace cli {
namespace {

/// Poll interval for the reader.
constexpr int kMomentMs = 100;

/// Ignores the user's configuration file, which could change the output. Proxies come from the environment. The address
/// is passed by stdin, since arguments are public. Bodies are raw (HttpBody): curl's decoded form appends trailers.
std::vector<std::string> argumentsFor(const std::string& url, uint64_t offset) {
  const bool secure = url.compare(0, 6, "https:") == 0;
  std::vector<std::string> arguments = {"curl",
                                        "--disable",
                                        "--silent",
                                        "--show-error",
                                        "--fail",
                                        "--globoff",
                                        "--include",
                                        "--no-buffer",
                                        "--http1.1",
                                        "--raw",
                                        "--suppress-connect-headers",
                                        "--location",
                                        "--max-redirs",
                                        "10",
                                        "--proto",
                                        "=https,http",
                                        "--proto-redir",
                                        secure ? "=https" : "=https,http",
                                        "--connect-timeout",
                                        "30",
                                        "--speed-limit",
                                        "1",
                                        "--speed-time",
                                        "60",
                                        "--user-agent",
                                        "oriel"};
  if (offset != 0) {
    arguments.insert(arguments.end(), {"--range", std::to_string(offset) + "-"});
  }
  arguments.insert(arguments.end(), {"--config", "-"});
  return arguments;
}

/// In curl's configuration syntax. curl does not send a token to another server after a redirect.
std::string configurationFor(const std::string& url) {
  const std::string token = tokenFor(url);
  std::string text = "url = \"";
  for (const char c : url) {
    text += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  }
  return text + "\"\n" +
         (token.empty() ? "" : "header = \"Authorization: Bearer " + token + "\"\n");
}

/// "curl: (6) Could not resolve host: x" without the prefix, on one line. Servers influence this text.
std::string inItsWords(const std::string& text) {
  const size_t begin = text.find(") ");
  const size_t from = begin == std::string::npos ? 0 : begin + 2;
  const std::string words =
      terminalSafe(text.substr(from, text.find_first_of("\r\n", from) - from));
  return isPlainText(words) ? words : "";
}

[[noreturn]] void failToStart(const std::string& why, const std::string& otherwise) {
  throw Failure{kExitFailed, why + ": " + otherwise};
}

}  // namespace

bool CurlEnd::isCut() const {
  switch (code) {
    case 5:  // proxies and hosts that are unknown or unreachable
    case 6:
    case 7:
    case kPartOfFile:
    case 28:  // too slow
    case 52:  // nothing came
    case 55:  // sending failed, ...
    case 56:  // ... or receiving
    case 92:  // an HTTP/2 stream broke
      return true;
    default:
      return false;
  }
}

#ifdef _WIN32

namespace {

/// Quoted by the rules of Windows programs.
std::wstring quoted(const std::string& argument) {
  std::wstring out = L"\"";
  size_t slashes = 0;
  for (const wchar_t c : std::filesystem::u8path(argument).wstring()) {
    slashes = c == L'\\' ? slashes + 1 : 0;
    if (c == L'"') {
      out.append(slashes + 1, L'\\');
    }
    out += c;
  }
  return out.append(slashes, L'\\') + L"\"";
}

struct Handles {
  HANDLE ours = nullptr;
  HANDLE theirs = nullptr;

  enum class From { kThem, kUs };
  bool open(From from) {
    SECURITY_ATTRIBUTES inherited = {sizeof(inherited), nullptr, TRUE};
    HANDLE* const read = from == From::kThem ? &ours : &theirs;
    HANDLE* const write = from == From::kThem ? &theirs : &ours;
    return CreatePipe(read, write, &inherited, 0) != 0 &&
           SetHandleInformation(ours, HANDLE_FLAG_INHERIT, 0) != 0;
  }
  static void close(HANDLE* handle) {
    if (*handle != nullptr) {
      CloseHandle(*handle);
      *handle = nullptr;
    }
  }
  ~Handles() {
    close(&ours);
    close(&theirs);
  }
};

}  // namespace

struct Curl::Process {
  Handles in;
  Handles out;
  Handles err;
  HANDLE process = nullptr;

  ~Process() {
    if (process != nullptr) {
      TerminateProcess(process, 1);
      WaitForSingleObject(process, INFINITE);
      CloseHandle(process);
    }
  }
};

Curl::Curl(const std::string& url, uint64_t offset, const std::string& otherwise)
    : process_(std::make_unique<Process>()) {
  if (!process_->in.open(Handles::From::kUs) || !process_->out.open(Handles::From::kThem) ||
      !process_->err.open(Handles::From::kThem)) {
    failToStart("curl cannot be started", otherwise);
  }
  std::wstring line;
  for (const std::string& argument : argumentsFor(url, offset)) {
    line += (line.empty() ? L"" : L" ") + quoted(argument);
  }
  STARTUPINFOW start = {};
  start.cb = sizeof(start);
  start.dwFlags = STARTF_USESTDHANDLES;
  start.hStdInput = process_->in.theirs;
  start.hStdOutput = process_->out.theirs;
  start.hStdError = process_->err.theirs;
  PROCESS_INFORMATION made = {};
  if (CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, 0, nullptr, nullptr, &start,
                     &made) == 0) {
    failToStart("curl is not installed, and downloads need it", otherwise);
  }
  CloseHandle(made.hThread);
  process_->process = made.hProcess;
  Handles::close(&process_->in.theirs);
  Handles::close(&process_->out.theirs);
  Handles::close(&process_->err.theirs);
  const std::string configuration = configurationFor(url);
  DWORD written = 0;
  (void)WriteFile(process_->in.ours, configuration.data(), static_cast<DWORD>(configuration.size()),
                  &written, nullptr);
  Handles::close(&process_->in.ours);
}

long Curl::read(char* buffer, size_t capacity) {
  DWORD waiting = 0;
  if (PeekNamedPipe(process_->out.ours, nullptr, 0, nullptr, &waiting, nullptr) == 0) {
    return 0;
  }
  if (waiting == 0) {
    Sleep(10);
    return -1;
  }
  DWORD count = 0;
  return ReadFile(process_->out.ours, buffer, static_cast<DWORD>(capacity), &count, nullptr) != 0
             ? static_cast<long>(count)
             : 0;
}

Curl::~Curl() = default;

CurlEnd Curl::finish() {
  CurlEnd end;
  char buffer[1024];
  DWORD count = 0;
  while (ReadFile(process_->err.ours, buffer, sizeof(buffer), &count, nullptr) != 0 && count != 0) {
    end.error.append(buffer, count);
  }
  WaitForSingleObject(process_->process, INFINITE);
  DWORD code = 0;
  GetExitCodeProcess(process_->process, &code);
  end.code = static_cast<int>(code);
  end.error = inItsWords(end.error);
  return end;
}

#else

struct Curl::Process {
  pid_t id = -1;
  int out = -1;
  int err = -1;

  ~Process() {
    for (const int descriptor : {out, err}) {
      if (descriptor >= 0) {
        close(descriptor);
      }
    }
    if (id > 0) {
      kill(id, SIGKILL);
      int status = 0;
      while (waitpid(id, &status, 0) < 0 && errno == EINTR) {
      }
    }
  }
};

namespace {

bool openPipe(int* ours, int* theirs) {
  int ends[2];
  if (pipe(ends) != 0) {
    return false;
  }
  for (const int end : ends) {
    fcntl(end, F_SETFD, FD_CLOEXEC);
  }
  *ours = ends[0];
  *theirs = ends[1];
  return true;
}

void writeAll(int descriptor, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t count = ::write(descriptor, text.data() + at, text.size() - at);
    if (count < 0 && errno != EINTR) {
      return;  // curl ended, and reports the reason
    }
    at += count > 0 ? static_cast<size_t>(count) : 0;
  }
}

/// 0, or an errno.
int spawn(std::vector<std::string> arguments, int in, int out, int err, pid_t* id) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  sigaddset(&usual, SIGINT);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawnp(id, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

Curl::Curl(const std::string& url, uint64_t offset, const std::string& otherwise)
    : process_(std::make_unique<Process>()) {
  int in = -1;
  int to_in = -1;
  int out = -1;
  int err = -1;
  const bool piped =
      openPipe(&process_->out, &out) && openPipe(&process_->err, &err) && openPipe(&in, &to_in);
  const int error = piped ? spawn(argumentsFor(url, offset), in, out, err, &process_->id) : errno;
  if (error == 0) {
    writeAll(to_in, configurationFor(url));
  }
  for (const int descriptor : {in, to_in, out, err}) {
    if (descriptor >= 0) {
      close(descriptor);
    }
  }
  if (error == ENOENT) {
    failToStart("curl is not installed, and downloads need it", otherwise);
  }
  if (error != 0) {
    failToStart(std::string("curl cannot be started (") + std::strerror(error) + ")", otherwise);
  }
}

long Curl::read(char* buffer, size_t capacity) {
  pollfd waits[2] = {{process_->out, POLLIN, 0}, {wakeDescriptor(), POLLIN, 0}};
  if (poll(waits, wakeDescriptor() >= 0 ? 2 : 1, kMomentMs) <= 0 || waits[0].revents == 0) {
    return -1;
  }
  const ssize_t count = ::read(process_->out, buffer, capacity);
  return count < 0 ? (errno == EINTR ? -1 : 0) : static_cast<long>(count);
}

Curl::~Curl() = default;

CurlEnd Curl::finish() {
  CurlEnd end;
  char buffer[1024];
  for (ssize_t count = 0; (count = ::read(process_->err, buffer, sizeof(buffer))) != 0;) {
    if (count < 0 && errno != EINTR) {
      break;
    }
    end.error.append(buffer, count > 0 ? static_cast<size_t>(count) : 0);
  }
  int status = 0;
  while (waitpid(process_->id, &status, 0) < 0 && errno == EINTR) {
  }
  process_->id = -1;
  end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 56;  // ended by a signal
  end.error = inItsWords(end.error);
  return end;
}

#endif

}  // namespace cli
