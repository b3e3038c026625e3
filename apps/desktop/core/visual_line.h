// The characters of a line from left to right, as they are drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "wrapped_text.h"

namespace desktop {

struct VisualCharacter {
  uint32_t character = 0;  ///< Arabic letters in the form that joins their neighbours
  size_t at = 0;           ///< the byte of the text that it begins at
  bool leftwards = false;  ///< the text goes on at its left
};

struct VisualLine {
  std::vector<VisualCharacter> characters;
  bool leftwards = false;  ///< its paragraph is written from right to left
};

/// Characters that show nothing are left out. Without FriBidi the order is that of the text.
VisualLine visualLine(const std::string& text, const Line& line);
/// Whether that differs from the order of the text: it has letters of a script from right to left.
bool hasLeftwards(const std::string& text, const Line& line);
/// Joiners, marks of direction, and selectors of a variant.
bool showsNothing(uint32_t character);

}  // namespace desktop
