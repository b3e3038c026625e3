// Collects a reply's parts: a thought, an answer and tool calls.
#pragma once

#include <string>
#include <vector>

#include <oriel/advanced.h>

#include "output.h"

namespace cli {

struct ToolCall {
  std::string name;
  std::string arguments;  ///< one JSON object, after the call is complete
  bool complete = false;
};

struct ReplyParts {
  std::string text;
  std::string thought;
  std::vector<ToolCall> calls;

  void add(const oriel_part& part);
  /// Without calls that were cut off.
  std::vector<ToolCall> completeCalls() const;
};

/// {"name", "arguments"}, with the arguments as an object.
Json callJson(const ToolCall& call);
/// A list of the complete calls.
Json callsJson(const ReplyParts& parts);

}  // namespace cli
