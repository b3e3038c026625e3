// Batch mode: JSON lines with requests in, JSON lines with replies out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chat/chat.h"
#include "reply/json_input.h"

namespace cli {

// The lines of a batch with their requests.

struct BatchLine {
  Json id;  ///< as given, or the line's number
  ChatOptions options;
  Json messages = Json::array();
  std::string error;  ///< empty: no error so far
};

/// An unparsed line. Options with a schema or tools are large, so they are made when needed.
struct WrittenLine {
  size_t number = 0;  ///< from 1 on
  std::string text;
};

/// Skips empty lines, but counts them.
std::vector<WrittenLine> batchLines(const std::string& text);
/// Parses a JSON line; `options` are the defaults.
std::unique_ptr<BatchLine> readBatchLine(const WrittenLine& written, const ChatOptions& options);

// Batch mode: JSON lines with prompts in, JSON lines with replies out, several in parallel.

struct ChatOptions;

/// Answers every line of the file ("-" is stdin) in order; missing fields come from `options`. Up to
/// options.common.sessions sessions reply together. A failed line gives an error in its place. Returns the exit code;
/// throws Failure after the last line if some failed.
int runBatch(const std::string& path, const ChatOptions& options);

}  // namespace cli
