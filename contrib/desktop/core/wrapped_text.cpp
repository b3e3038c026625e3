#include "wrapped_text.h"

#include "utf8.h"

namespace desktop {

std::vector<Line> wrapText(const std::string& text, float width, const Advance& advance) {
  std::vector<Line> lines;
  size_t begin = 0;
  size_t break_at = 0;  // after the last space of the line; begin: no space
  float used = 0;
  for (size_t at = 0; at < text.size();) {
    size_t next = 0;
    const uint32_t character = utf8::decode(text, at, &next);
    if (character == '\n') {
      lines.push_back({begin, at});
      begin = break_at = next;
      used = 0;
    } else {
      used += advance(character, at);
      if (character == ' ') {
        break_at = next;  // spaces may exceed the width
      } else if (used > width && at > begin) {
        const size_t cut = break_at > begin ? break_at : at;
        lines.push_back({begin, cut});
        begin = break_at = cut;
        used = widthOf(text, cut, next, advance);
      }
    }
    at = next;
  }
  lines.push_back({begin, text.size()});
  return lines;
}

float widthOf(const std::string& text, size_t begin, size_t end, const Advance& advance) {
  float used = 0;
  for (size_t at = begin; at < end;) {
    size_t next = 0;
    used += advance(utf8::decode(text, at, &next), at);
    at = next;
  }
  return used;
}

size_t lineOf(const std::vector<Line>& lines, size_t offset) {
  size_t found = 0;
  for (size_t i = 0; i < lines.size() && lines[i].begin <= offset; i++) {
    found = i;
  }
  return found;
}

}  // namespace desktop
