// Messages of a request, checked and brought to one form.
#pragma once

#include <vector>

#include "serve/reply_request.h"

namespace cli {

std::vector<ChatMessage> readChatMessages(const Json& list);

}  // namespace cli
