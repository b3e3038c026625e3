// OpenAI's `tools` and `tool_choice`.
#pragma once

#include <vector>

#include "serve/fields.h"
#include "serve/message.h"

namespace cli {

/// Chat completions wrap a function's fields in an object; responses do not.
struct ToolStyle {
  bool wrapped = true;
};
constexpr ToolStyle kChatTools = {true};
constexpr ToolStyle kResponseTools = {false};

/// tools, tool_choice and parallel_tool_calls. Throws ApiError that names the field.
void readToolFields(const Fields& fields, const ToolStyle& style, ReplyRequest* request);

// Messages in the form of /v1/chat/completions.

std::vector<ChatMessage> readChatMessages(const Json& list);

// Bodies of /v1/chat/completions and /v1/completions.

/// Both throw ApiError that names the field.
ReplyRequest readChatRequest(const Json& body, const ModelFacts& facts);
ReplyRequest readCompletionRequest(const Json& body, const ModelFacts& facts);

/// Stores `reasoning_effort`, or another protocol's equivalent, in the form.
void readEffort(const std::optional<std::string>& effort, ReplyRequest* request);
/// "reasoning": {"effort", "max_tokens"}
void readReasoning(const Fields& fields, ReplyRequest* request);
/// chat_template_kwargs.
void readTemplateVariables(const Fields& fields, ReplyRequest* request);

// The body of /v1/responses. Stateless: every request contains the whole conversation.

/// Throws ApiError that names the field.
ReplyRequest readResponsesRequest(const Json& body, const ModelFacts& facts);

}  // namespace cli
