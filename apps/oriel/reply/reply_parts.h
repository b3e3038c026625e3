// What the parts of a reply add up to: a thought, an answer and calls of tools.
#pragma once

#include <string>
#include <vector>

#include <oriel/advanced.h>

#include "output.h"

namespace cli {

struct ToolCall {
  std::string name;
  std::string arguments;  ///< one JSON object, once the call is complete
  bool complete = false;
};

struct ReplyParts {
  std::string text;
  std::string thought;
  std::vector<ToolCall> calls;

  void add(const oriel_part& part);
  /// Those that were not cut off.
  std::vector<ToolCall> completeCalls() const;
};

/// {"name", "arguments"}, with the arguments as an object.
Json callJson(const ToolCall& call);
/// A list of the complete ones.
Json callsJson(const ReplyParts& parts);

}  // namespace cli
