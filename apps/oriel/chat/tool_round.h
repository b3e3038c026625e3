// Runs the model's tool calls in a chat and returns the results to the model.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "model_handle.h"
#include "output.h"
#include "reply/local_tools.h"
#include "reply/reply_parts.h"

namespace CLI {
class App;
}

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
