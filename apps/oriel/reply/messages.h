// Conversations in files.
#pragma once

#include <string>

#include "output.h"

namespace cli {

/// Checks a JSON list of messages in the OpenAI form. Throws Failure if it is not a list of objects with roles; `what`
/// names the source in errors.
Json messagesFrom(Json json, const std::string& what);
/// The folder of a file's name; "" for stdin.
std::string folderOf(const std::string& path);
/// Reads a file; "-" is stdin.
Json readMessages(const std::string& path);
/// As text for the library. Throws Failure for invalid UTF-8.
std::string messagesText(const Json& messages);

}  // namespace cli
