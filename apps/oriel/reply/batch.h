// Batch mode: JSON lines with prompts in, JSON lines with replies out, several in parallel.
#pragma once

#include <string>

namespace cli {

struct ChatOptions;

/// Answers every line of the file ("-" is stdin) in order; missing fields come from `options`. Up to
/// options.common.sessions sessions reply together. A failed line gives an error in its place. Returns the exit code;
/// throws Failure after the last line if some failed.
int runBatch(const std::string& path, const ChatOptions& options);

}  // namespace cli
