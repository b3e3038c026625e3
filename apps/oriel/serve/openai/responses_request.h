// The body of /v1/responses. Nothing is stored: every request holds the whole conversation.
#pragma once

#include "serve/reply_request.h"

namespace cli {

/// Throws ApiError that names the field.
ReplyRequest readResponsesRequest(const Json& body, const ModelFacts& facts);

}  // namespace cli
