// Messages in the form of /v1/chat/completions.
#pragma once

#include <vector>

#include "serve/reply_request.h"

namespace cli {

std::vector<ChatMessage> readChatMessages(const Json& list);

}  // namespace cli
