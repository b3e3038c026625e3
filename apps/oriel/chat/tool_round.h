// Calls of tools in a chat: what the model calls is run, and its results go back to the model.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "output.h"
#include "reply/local_tools.h"
#include "reply/reply_parts.h"

namespace CLI {
class App;
}

namespace cli {

/// A turn goes on with so many replies to results of tools.
constexpr uint32_t kMostToolRounds = 8;

/// --allow-tool; `tools` must outlive the parsing.
void addToolOptions(CLI::App* command, std::vector<LocalTool>* tools);
/// Throws Failure (wrong usage) for commands of tools that there are not.
void checkToolOptions(const std::vector<LocalTool>& tools, bool has_tools);

class ToolRunner {
 public:
  explicit ToolRunner(const std::vector<LocalTool>& allowed) : allowed_(allowed) {}

  /// Runs the calls in their order: the messages with their results, as JSON. A call that is not allowed has an error as
  /// its result, and a line says what would allow it. `watched`: a line says what is run.
  std::string results(const std::vector<ToolCall>& calls, bool watched);

 private:
  std::string result(const ToolCall& call, bool watched);

  const std::vector<LocalTool>& allowed_;
  std::set<std::string> refused_;  ///< the line was said
  uint32_t calls_ = 0;
};

}  // namespace cli
