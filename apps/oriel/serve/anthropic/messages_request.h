// The body of Anthropic's /v1/messages and /v1/messages/count_tokens.
#pragma once

#include "serve/reply_request.h"

namespace cli {

/// Throws ApiError that names the field.
ReplyRequest readMessagesRequest(const Json& body, const ModelFacts& facts);
ReplyRequest readCountRequest(const Json& body, const ModelFacts& facts);

}  // namespace cli
