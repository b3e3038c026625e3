// Ids of requests, replies and calls.
#pragma once

#include <string>

namespace cli {

/// `kind` followed by 24 random letters and digits: "chatcmpl-...".
std::string newId(const char* kind);

}  // namespace cli
