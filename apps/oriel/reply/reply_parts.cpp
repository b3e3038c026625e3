#include "reply/reply_parts.h"

#include <algorithm>
#include <iterator>

namespace cli {

void ReplyParts::add(const oriel_part& part) {
  const std::string_view added(part.text, part.text_bytes);
  switch (part.kind) {
    case ORIEL_PART_TEXT:
      text += added;
      break;
    case ORIEL_PART_THOUGHT:
      thought += added;
      break;
    case ORIEL_PART_CALL_BEGUN:
      calls.push_back({std::string(added), "", false});
      break;
    case ORIEL_PART_CALL_ARGUMENTS:
      calls.back().arguments += added;
      break;
    case ORIEL_PART_CALL_ENDED:
      calls.back().complete = true;
      break;
    case ORIEL_PART_STRING:
    case ORIEL_PART_LITERAL:
    case ORIEL_PART_VALUE_ENDED:
      break;  // not asked for
  }
}

std::vector<ToolCall> ReplyParts::completeCalls() const {
  std::vector<ToolCall> complete;
  std::copy_if(calls.begin(), calls.end(), std::back_inserter(complete),
               [](const ToolCall& call) { return call.complete; });
  return complete;
}

Json callJson(const ToolCall& call) {
  Json json;
  json["name"] = call.name;
  // A number that a double cannot hold stays text.
  const Json parsed = tryJson(call.arguments);
  json["arguments"] = parsed.is_discarded() ? Json(call.arguments) : parsed;
  return json;
}

Json callsJson(const ReplyParts& parts) {
  Json list = Json::array();
  for (const ToolCall& call : parts.completeCalls()) {
    list.push_back(callJson(call));
  }
  return list;
}

}  // namespace cli
