// Commands of this machine that a model may have run: only those that the user names.
#pragma once

#include <string>
#include <vector>

namespace cli {

struct LocalTool {
  std::string name;     ///< as the model calls it
  std::string command;  ///< as the user typed it, for the shell
};

/// Reads NAME=COMMAND; throws CLI::ValidationError.
LocalTool parseLocalTool(const std::string& text);

/// Runs the tool's command in the user's shell with `arguments`, JSON, on its stdin and the tool's name in the variable
/// ORIEL_TOOL: nothing that a model writes is part of the command line. Its stderr is the program's. What it prints
/// (at most 256 KiB, less than a minute; Ctrl-C ends it) is the result; a command that fails, or prints no UTF-8, gives
/// a result that says so. POSIX systems only: elsewhere the result says that.
std::string runLocalTool(const LocalTool& tool, const std::string& arguments);

}  // namespace cli
