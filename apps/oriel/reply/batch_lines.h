// The lines of a batch, each with what it asks for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chat/chat.h"
#include "reply/json_input.h"

namespace cli {

struct BatchLine {
  Json id;  ///< as it is told; the line's number where it has none
  ChatOptions options;
  Json messages = Json::array();
  std::string error;  ///< empty: it can be answered, so far
};

/// A line as it is written: options are large where they hold a schema or tools, and are made when their turn comes.
struct WrittenLine {
  size_t number = 0;  ///< from 1 on
  std::string text;
};

/// Empty lines are none, but count.
std::vector<WrittenLine> batchLines(const std::string& text);
/// One of JSON, with `options` but for what it says itself.
std::unique_ptr<BatchLine> readBatchLine(const WrittenLine& written, const ChatOptions& options);

}  // namespace cli
