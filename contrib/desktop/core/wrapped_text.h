// Wraps text in a column, and maps points to bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace desktop {

struct Line {
  size_t begin = 0;  ///< bytes of the text
  size_t end = 0;    ///< excludes the newline or space at which it broke
};

/// The width of the character at byte `at`, in the unit of the column's width.
using Advance = std::function<float(uint32_t character, size_t at)>;

/// Breaks at newlines. A line wider than `width` breaks after a space, or inside a word that is wider than a line.
/// Returns at least one line.
std::vector<Line> wrapText(const std::string& text, float width, const Advance& advance);

float widthOf(const std::string& text, size_t begin, size_t end, const Advance& advance);
/// The line that shows a caret before byte `offset`.
size_t lineOf(const std::vector<Line>& lines, size_t offset);

}  // namespace desktop
