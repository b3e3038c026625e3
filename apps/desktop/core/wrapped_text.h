// Where lines of text break in a column, and which byte lies under a point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace desktop {

struct Line {
  size_t begin = 0;  ///< bytes of the text
  size_t end = 0;    ///< without the newline, or the space, that it broke at
};

/// The width of the character at byte `at`, in the unit of the column's width.
using Advance = std::function<float(uint32_t character, size_t at)>;

/// Breaks at newlines and, where a line would be wider than `width`, behind spaces, or within a word that is wider than
/// a line. There is always one line at least.
std::vector<Line> wrapText(const std::string& text, float width, const Advance& advance);

float widthOf(const std::string& text, size_t begin, size_t end, const Advance& advance);
/// The line on which a caret before byte `offset` stands.
size_t lineOf(const std::vector<Line>& lines, size_t offset);

}  // namespace desktop
