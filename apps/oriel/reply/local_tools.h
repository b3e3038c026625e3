// Local commands that a model may run: only those named by the user.
#pragma once

#include <string>
#include <vector>

namespace cli {

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
