// OpenAI's `tools` and `tool_choice`.
#pragma once

#include "serve/fields.h"
#include "serve/reply_request.h"

namespace cli {

/// Chat completions wrap a function's fields in an object; responses do not.
struct ToolStyle {
  bool wrapped = true;
};
constexpr ToolStyle kChatTools = {true};
constexpr ToolStyle kResponseTools = {false};

/// tools, tool_choice and parallel_tool_calls. Throws ApiError that names the field.
void readToolFields(const Fields& fields, const ToolStyle& style, ReplyRequest* request);

}  // namespace cli
