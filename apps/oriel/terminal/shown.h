// Safe display of foreign text on a terminal.
#pragma once

#include <cstdio>
#include <string_view>

namespace cli {

/// The latest output of a stream, since a character may continue in the next call.
struct ShownBefore {
  char32_t base = 0;      ///< the base character for marks; 0: none
  bool selected = false;  ///< it has a variation selector
};

/// Writes the text with invisible and direction-changing characters as JSON escapes ("\u202e"): direction overrides,
/// zero-width characters, tags. Shaping characters stay: joiners in emoji and joining scripts, one variation selector.
/// False: the stream failed.
bool writeShown(std::string_view text, std::FILE* stream, ShownBefore* before) noexcept;
/// True if the text is written unchanged.
bool showsAll(std::string_view text);

}  // namespace cli
