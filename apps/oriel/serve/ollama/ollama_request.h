// The bodies of Ollama's /api/chat and /api/generate.
#pragma once

#include "serve/reply_request.h"

namespace cli {

/// Both throw ApiError that names the field. Without messages and prompts the client only wants the model to be there.
ReplyRequest readOllamaChat(const Json& body, const ModelFacts& facts);
ReplyRequest readOllamaGenerate(const Json& body, const ModelFacts& facts);

}  // namespace cli
