// Puts the characters of a line into display order, left to right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "wrapped_text.h"

namespace desktop {

struct VisualCharacter {
  uint32_t character = 0;  ///< Arabic letters in their joined form
  size_t at = 0;           ///< offset in the text, in bytes
  bool leftwards = false;  ///< part of right-to-left text
};

struct VisualLine {
  std::vector<VisualCharacter> characters;
  bool leftwards = false;  ///< the paragraph is right-to-left
};

/// Omits invisible characters. Without ICU the order is logical.
VisualLine visualLine(const std::string& text, const Line& line);
/// True if the line has right-to-left characters.
bool hasLeftwards(const std::string& text, const Line& line);
/// True for joiners, direction marks and variation selectors.
bool showsNothing(uint32_t character);

}  // namespace desktop
