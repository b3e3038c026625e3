// The terminal's clipboard, also over a remote connection (OSC 52).
#pragma once

#include <cstddef>
#include <string>

namespace cli {

/// Terminals drop larger texts.
constexpr size_t kMostCopiedBytes = 74 << 10;

/// False: the terminal takes no escape sequences, or the text is too long.
bool copyToClipboard(const std::string& text);

}  // namespace cli
