// A line of text as it stands on the screen: where each character is, and which one is under the mouse.
#pragma once

#include <imgui.h>

#include <functional>
#include <string>
#include <vector>

#include "fonts.h"
#include "markdown.h"
#include "wrapped_text.h"

namespace desktop {

/// The style of the character at a byte.
using StyleAt = std::function<TextStyle(size_t)>;

ImFont* fontOf(const Fonts& fonts, TextStyle style);
/// The width of characters before they are put in order.
Advance advanceOf(const Fonts& fonts, const StyleAt& style);

class DrawnLine {
 public:
  DrawnLine(const Fonts& fonts, const std::string& text, const Line& line, const StyleAt& style);

  float width() const { return width_; }
  /// It belongs at the right edge of its column.
  bool leftwards() const { return leftwards_; }
  /// Where a caret before this byte stands, from the line's left end.
  float caret(size_t byte) const;
  /// The byte that a caret at `x` stands before.
  size_t byteAt(float x) const;
  /// What lies between two bytes, as tinted rectangles.
  void drawSelection(ImVec2 at, size_t begin, size_t end) const;
  /// `boxes`: code is marked by its background.
  void draw(ImVec2 at, ImU32 colour, bool boxes) const;

 private:
  struct Glyph {
    ImWchar character;
    size_t at;
    size_t next;  ///< the byte behind it
    TextStyle style;
    bool leftwards;
    float x;
    float width;
  };

  const Fonts& fonts_;
  std::vector<Glyph> glyphs_;
  size_t begin_ = 0;
  size_t end_ = 0;
  float width_ = 0;
  bool leftwards_ = false;
};

}  // namespace desktop
