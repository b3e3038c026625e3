// The clipboard of the terminal, from afar as well (OSC 52).
#pragma once

#include <cstddef>
#include <string>

namespace cli {

/// Terminals drop more than this.
constexpr size_t kMostCopiedBytes = 74 << 10;

/// False: the terminal takes no escape sequences, or the text is too long.
bool copyToClipboard(const std::string& text);

}  // namespace cli
