// Conversations in files.
#pragma once

#include <string>

#include "output.h"

namespace cli {

/// A JSON list of messages in the OpenAI form, as the library takes it. Throws Failure for what is no list of objects with
/// roles; `what` names the source in errors.
Json messagesFrom(Json json, const std::string& what);
/// Out of a file; "-" is stdin.
Json readMessages(const std::string& path);
/// As the library reads it. Throws Failure where a text is not UTF-8.
std::string messagesText(const Json& messages);

}  // namespace cli
