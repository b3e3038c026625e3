// What a terminal shows of a text that others wrote.
#pragma once

#include <cstdio>
#include <string_view>

namespace cli {

/// What was written to a stream last: a character may come in the next call.
struct ShownBefore {
  char32_t base = 0;      ///< the character that marks would stand on; 0: none
  bool selected = false;  ///< it has a variation selector
};

/// Writes all bytes of the text, with characters that show nothing or turn what is around them as JSON's escapes
/// ("\u202e"): overrides of direction, characters of no width, tags. Those that shape the character before them stay:
/// joiners in emoji and in scripts that join, one variation selector. False: the stream failed.
bool writeShown(std::string_view text, std::FILE* stream, ShownBefore* before) noexcept;
/// Whether it writes the text as it is.
bool showsAll(std::string_view text);

}  // namespace cli
