// Many prompts in one go: JSON lines in, JSON lines out, several at a time.
#pragma once

#include <string>

namespace cli {

struct ChatOptions;

/// Answers every line of the file ("-" is stdin) in its order; what a line does not say is as in `options`. Sessions of
/// the model, as many as options.common.sessions, reply together. A line that fails has its error in its place. Returns
/// the exit code; throws Failure behind the last line where some failed.
int runBatch(const std::string& path, const ChatOptions& options);

}  // namespace cli
