// Tools that run on this machine, and their rounds in a chat.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "model_handle.h"
#include "output.h"
#include "reply/reply_parts.h"

namespace cli {

// Local commands that a model may run: only those named by the user.

struct LocalTool {
  std::string name;     ///< the name for the model
  std::string command;  ///< the shell command, as typed by the user
};

/// Parses NAME=COMMAND; throws CLI::ValidationError.
LocalTool parseLocalTool(const std::string& text);

/// Runs the command in the user's shell with `arguments`, JSON, on its stdin and the tool's name in the variable
/// ORIEL_TOOL. The model's text is never part of the command line. stderr is the program's. The result is its output (at
/// most 256 KiB, within a minute; Ctrl-C ends it). A failure or invalid UTF-8 gives a result that says so. POSIX systems
/// only; elsewhere the result is an error text.
std::string runLocalTool(const LocalTool& tool, const std::string& arguments);

}  // namespace cli

namespace CLI {

// Runs the model's tool calls in a chat and returns the results to the model.

class App;
}  // namespace CLI

namespace cli {

/// Limit on replies to tool results in one turn.
constexpr uint32_t kMostToolRounds = 8;

/// --allow-tool; `tools` must outlive the parsing.
void addToolOptions(CLI::App* command, std::vector<LocalTool>* tools);
/// Throws Failure (wrong usage) for unknown tools.
void checkToolOptions(const std::vector<LocalTool>& tools, bool has_tools);

class ToolRunner {
 public:
  explicit ToolRunner(const std::vector<LocalTool>& allowed) : allowed_(allowed) {}

  /// Runs the calls in order and returns the messages with their results, as JSON. A call that is not allowed gets an
  /// error as its result, and a printed line names the option that would allow it. `watched`: prints the commands that
  /// run.
  std::string results(const std::vector<ToolCall>& calls, bool watched);

 private:
  std::string result(const ToolCall& call, bool watched);

  const std::vector<LocalTool>& allowed_;
  std::set<std::string> refused_;  ///< tools whose refusal was printed
  uint32_t calls_ = 0;
};

// Continues conversations after a lost device.

/// True if the session's device is lost.
bool deviceLost(const Session& session);

/// Continues the session at its position, on the same device or another one. Throws Failure.
void recover(const Session& session, Model* model);

/// "on the CPU".
std::string placeOf(const Model& model);

}  // namespace cli
