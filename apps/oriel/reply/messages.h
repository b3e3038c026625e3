// Conversations in files.
#pragma once

#include <string>

#include "output.h"

namespace cli {

/// A JSON list of messages in the OpenAI form, as the library takes it; "-" is stdin. Throws Failure for what is no list of
/// objects with roles.
Json readMessages(const std::string& path);
/// As the library reads it. Throws Failure where a text is not UTF-8.
std::string messagesText(const Json& messages);

}  // namespace cli
