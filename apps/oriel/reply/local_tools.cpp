#include "reply/local_tools.h"

#include <algorithm>

#include <oriel/advanced.h>
#include <CLI/CLI.hpp>

#if !defined(_WIN32)
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#endif

#include "output.h"
#include "reply/messages.h"
#include "terminal/interrupt.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {

LocalTool parseLocalTool(const std::string& text) {
  const size_t at = text.find('=');
  if (at == 0 || at == std::string::npos || at + 1 == text.size()) {
    throw CLI::ValidationError("--allow-tool", "'" + text + "' is not a tool: write NAME=COMMAND");
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

#if defined(_WIN32)

std::string runLocalTool(const LocalTool& tool, const std::string& /*arguments*/) {
  return "error: " + tool.name + " cannot be run here: commands are run on POSIX systems only";
}

#else

namespace {

constexpr size_t kMostResultBytes = 256 * 1024;
constexpr auto kMostTime = std::chrono::seconds(55);
constexpr int kLookEveryMs = 50;

/// Both ends of a pipe, closed by the destructor.
struct ToolPipe {
  int read_end = -1;
  int write_end = -1;

  bool open() {
    int ends[2];
    if (pipe(ends) != 0) {
      return false;
    }
    read_end = ends[0];
    write_end = ends[1];
    fcntl(read_end, F_SETFD, FD_CLOEXEC);
    fcntl(write_end, F_SETFD, FD_CLOEXEC);
    return true;
  }
  static void closeEnd(int* end) {
    if (*end >= 0) {
      close(*end);
      *end = -1;
    }
  }
  ~ToolPipe() {
    closeEnd(&read_end);
    closeEnd(&write_end);
  }
};

/// A running command in its own process group. The destructor kills the rest of the group.
class RunningTool {
 public:
  bool start(const LocalTool& tool) {
    if (!in_.open() || !out_.open()) {
      return false;
    }
    process_ = fork();
    if (process_ == 0) {
      setpgid(0, 0);
      std::signal(SIGINT, SIG_DFL);
      std::signal(SIGPIPE, SIG_DFL);
      setenv("ORIEL_TOOL", tool.name.c_str(), 1);
      dup2(in_.read_end, STDIN_FILENO);
      dup2(out_.write_end, STDOUT_FILENO);
      execl("/bin/sh", "sh", "-c", tool.command.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    if (process_ > 0) {
      setpgid(process_, process_);  // set in both processes, since the group may be killed at once
    }
    ToolPipe::closeEnd(&in_.read_end);
    ToolPipe::closeEnd(&out_.write_end);
    fcntl(in_.write_end, F_SETFL, O_NONBLOCK);
    return process_ > 0;
  }
  ~RunningTool() {
    if (process_ > 0) {
      kill(-process_, SIGKILL);
      int status = 0;
      while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
      }
    }
  }

  enum class End { kDone, kTooLong, kTooMuch, kStopped };

  End talk(const std::string& given, std::string* result) {
    size_t sent = 0;
    for (;;) {
      if (const End over = look(); over != End::kDone) {
        return over;
      }
      if (sent == given.size()) {
        ToolPipe::closeEnd(&in_.write_end);
      }
      pollfd waits[2] = {{out_.read_end, POLLIN, 0}, {in_.write_end, POLLOUT, 0}};
      if (poll(waits, in_.write_end >= 0 ? 2 : 1, kLookEveryMs) <= 0) {
        continue;
      }
      if (in_.write_end >= 0 && waits[1].revents != 0) {
        const ssize_t n = write(in_.write_end, given.data() + sent, given.size() - sent);
        // A command may ignore its input.
        sent = n > 0 ? sent + static_cast<size_t>(n) : errno == EAGAIN ? sent : given.size();
      }
      if (waits[0].revents != 0) {
        char buffer[4096];
        const ssize_t n = read(out_.read_end, buffer, sizeof(buffer));
        if (n == 0) {
          return End::kDone;
        }
        result->append(buffer, n > 0 ? static_cast<size_t>(n) : 0);
        if (result->size() > kMostResultBytes) {
          return End::kTooMuch;
        }
      }
    }
  }

  /// For a command that closed its output but may still run. `*code`: the exit code; -1: ended by a signal.
  End finish(int* code) {
    int status = 0;
    while (waitpid(process_, &status, WNOHANG) != process_) {
      if (const End over = look(); over != End::kDone) {
        return over;
      }
      poll(nullptr, 0, kLookEveryMs);
    }
    process_ = -1;
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return End::kDone;
  }

 private:
  /// kDone: keep going.
  End look() const {
    return interrupts() != 0                          ? End::kStopped
           : std::chrono::steady_clock::now() > most_ ? End::kTooLong
                                                      : End::kDone;
  }

  const std::chrono::steady_clock::time_point most_ = std::chrono::steady_clock::now() + kMostTime;
  ToolPipe in_;
  ToolPipe out_;
  pid_t process_ = -1;
};

/// By JSON's rules, since the result becomes JSON.
bool isUtf8(const std::string& text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

}  // namespace

std::string runLocalTool(const LocalTool& tool, const std::string& arguments) {
  const std::string stopped = "error: the user stopped " + tool.name;
  if (interrupts() != 0) {  // while another tool ran
    return stopped;
  }
  RunningTool running;
  std::string result;
  if (!running.start(tool)) {
    return "error: " + tool.name + " could not be started";
  }
  int code = 0;
  RunningTool::End end = running.talk(arguments, &result);
  end = end == RunningTool::End::kDone ? running.finish(&code) : end;
  switch (end) {
    case RunningTool::End::kTooLong:
      return "error: " + tool.name + " took too long";
    case RunningTool::End::kTooMuch:
      return "error: " + tool.name + " printed too much";
    case RunningTool::End::kStopped:
      return stopped;
    case RunningTool::End::kDone:
      break;
  }
  while (!result.empty() && result.back() == '\n') {
    result.pop_back();
  }
  if (!isUtf8(result)) {
    return "error: " + tool.name + " printed invalid UTF-8";
  }
  if (code != 0) {
    return "error: " + tool.name + " failed" + (result.empty() ? "" : ": " + result);
  }
  return result;
}

#endif

void addToolOptions(CLI::App* command, std::vector<LocalTool>* tools) {
  using Texts = std::vector<std::string>;
  command
      ->add_option_function<Texts>(
          "--allow-tool",
          [tools](const Texts& texts) {
            tools->clear();
            for (const std::string& text : texts) {
              tools->push_back(parseLocalTool(text));
            }
          },
          "Run COMMAND in the shell when the model calls tool NAME of --tools: it reads the "
          "arguments as JSON from stdin, and its output is the result (may be given several "
          "times)")
      ->allow_extra_args(false)
      ->type_name("NAME=COMMAND")
      ->group("Replies");
}

void checkToolOptions(const std::vector<LocalTool>& tools, bool has_tools) {
  if (!tools.empty() && !has_tools) {
    throw Failure{kExitUsage, "--allow-tool needs tools: add --tools FILE"};
  }
}

std::string ToolRunner::result(const ToolCall& call, bool watched) {
  const auto tool = std::find_if(allowed_.begin(), allowed_.end(),
                                 [&](const LocalTool& one) { return one.name == call.name; });
  if (tool == allowed_.end()) {
    if (refused_.insert(call.name).second) {
      tellText(oneLine("oriel: the model calls " + call.name +
                       ", which is not allowed: --allow-tool " + call.name +
                       "=COMMAND would run it") +
               "\n");
    }
    return "error: the user does not allow " + call.name;
  }
  if (watched) {
    tellText(dim(oneLine("runs " + tool->command)) + "\n");
  }
  return runLocalTool(*tool, call.arguments);
}

std::string ToolRunner::results(const std::vector<ToolCall>& calls, bool watched) {
  Json messages = Json::array();
  for (const ToolCall& call : calls) {
    Json message;
    message["role"] = "tool";
    message["name"] = call.name;
    message["tool_call_id"] = formatted("call%05u", ++calls_);
    message["content"] = result(call, watched);
    messages.push_back(std::move(message));
  }
  return messagesText(messages);
}

bool deviceLost(const Session& session) {
  const oriel_status status = oriel_session_append(session.get(), nullptr, 0, nullptr, nullptr);
  return status == ORIEL_ERROR_DEVICE || status == ORIEL_ERROR_TIMEOUT;
}

void recover(const Session& session, Model* model) {
  const CancelOnInterrupt cancel(session.get());
  const oriel_status status = session.cancellable([&] { return model->recover(session.get()); });
  try {
    session.check(status);
  } catch (const Failure& failure) {
    throw Failure{failure.exit_code,
                  failure.message.empty()
                      ? failure.message
                      : "the device was lost, and no other can go on: " + failure.message};
  }
}

std::string placeOf(const Model& model) {
  const std::string name = model.text("device");
  return "on " + (name == "CPU" ? "the CPU" : oneLine(name));
}

}  // namespace cli
