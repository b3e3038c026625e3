// The body of /v1/responses. Stateless: every request contains the whole conversation.
#pragma once

#include "serve/reply_request.h"

namespace cli {

/// Throws ApiError that names the field.
ReplyRequest readResponsesRequest(const Json& body, const ModelFacts& facts);

}  // namespace cli
