// Early exit of a command: main() prints the line and returns the exit code.
#pragma once

#include <string>

namespace cli {

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitDoesNotFit = 3;
constexpr int kExitCut = 4;  ///< --tokens truncated a reply under a schema, or a call
constexpr int kExitCancelled = 130;

/// Thrown. `message` is "WHAT HAPPENED: WHAT TO DO"; empty: prints nothing.
struct Failure {
  int exit_code = kExitFailed;
  std::string message;
};

}  // namespace cli
