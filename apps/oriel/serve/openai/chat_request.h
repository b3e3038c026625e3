// Bodies of /v1/chat/completions and /v1/completions.
#pragma once

#include "serve/fields.h"
#include "serve/reply_request.h"

namespace cli {

/// Both throw ApiError that names the field.
ReplyRequest readChatRequest(const Json& body, const ModelFacts& facts);
ReplyRequest readCompletionRequest(const Json& body, const ModelFacts& facts);

/// Stores `reasoning_effort`, or another protocol's equivalent, in the form.
void readEffort(const std::optional<std::string>& effort, ReplyRequest* request);
/// "reasoning": {"effort", "max_tokens"}
void readReasoning(const Fields& fields, ReplyRequest* request);
/// chat_template_kwargs.
void readTemplateVariables(const Fields& fields, ReplyRequest* request);

}  // namespace cli
