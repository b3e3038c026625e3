// Conversations in files.
#pragma once

#include <string>
#include <vector>

#include "model_handle.h"

namespace cli {

/// JSON `[{"role": ..., "content": ...}, ...]`; "-" is stdin. Throws Failure for anything else.
std::vector<Message> readMessages(const std::string& path);

}  // namespace cli
