// One line of text on the screen: draws it and maps x positions to bytes.
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
/// Character widths, for wrapping in logical order.
Advance advanceOf(const Fonts& fonts, const StyleAt& style);

class DrawnLine {
 public:
  DrawnLine(const Fonts& fonts, const std::string& text, const Line& line, const StyleAt& style);

  float width() const { return width_; }
  /// True: right-aligned in its column.
  bool leftwards() const { return leftwards_; }
  /// x of a caret before this byte, from the line's left end.
  float caret(size_t byte) const;
  /// The byte after a caret at `x`.
  size_t byteAt(float x) const;
  /// Tints the background of a byte range.
  void drawSelection(ImVec2 at, size_t begin, size_t end) const;
  /// `boxes`: draws a background for code.
  void draw(ImVec2 at, ImU32 colour, bool boxes) const;

 private:
  struct Glyph {
    ImWchar character;
    size_t at;
    size_t next;  ///< the following byte
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
