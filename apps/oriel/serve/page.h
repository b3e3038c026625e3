// The chat page at "/".
#pragma once

#include <string_view>

namespace cli {

std::string_view chatPage();

}  // namespace cli
