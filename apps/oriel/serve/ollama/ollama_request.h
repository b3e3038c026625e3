// The bodies of Ollama's /api/chat and /api/generate.
#pragma once

#include "serve/reply_request.h"

namespace cli {

/// Both throw ApiError that names the field. A request without messages and prompts only loads the model.
ReplyRequest readOllamaChat(const Json& body, const ModelFacts& facts);
ReplyRequest readOllamaGenerate(const Json& body, const ModelFacts& facts);

}  // namespace cli
