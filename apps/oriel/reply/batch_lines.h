// The lines of a batch, each with what it asks for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chat/chat.h"
#include "reply/json_input.h"

namespace cli {

/// It stays where it is: its options point into each other.
struct BatchLine {
  Json id;  ///< as it is told; the line's number where it has none
  ChatOptions options;
  Json messages = Json::array();
  std::string error;  ///< empty: it can be answered, so far
};

/// Lines of JSON, each with `options` but for what it says itself. Empty lines are none, but count.
std::vector<std::unique_ptr<BatchLine>> readBatchLines(const std::string& text,
                                                       const ChatOptions& options);

}  // namespace cli
