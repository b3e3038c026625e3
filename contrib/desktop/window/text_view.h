// One line of text on the screen: draws it and maps x positions to bytes.
#pragma once

#include <imgui.h>
#include <functional>
#include <string>
#include <vector>

#include "fonts.h"
#include "visual_line.h"
#include "widgets.h"

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

// Selectable text in a column.

/// Height of a line of wrapped text.
float lineHeight();

/// One text, laid out once for a width.
class TextView {
 public:
  /// Lays the text out for a width. Returns its size.
  ImVec2 layOut(const Context& context, const MarkdownBlock& block, float width);
  /// Draws the text at a screen position; handles the mouse as widget `id`.
  void draw(const Context& context, ImVec2 place, const std::string& id);
  /// Ctrl+C was pressed: true if there was a selection to copy.
  bool copy() const;
  void dropSelection() { edit_.moveTo(edit_.caret(), false); }
  bool hasSelection() const { return edit_.selectionBegin() != edit_.selectionEnd(); }
  const std::vector<Line>& lines() const { return lines_; }

 private:
  size_t byteUnder(ImVec2 mouse, ImVec2 place) const;

  TextStyle styleAt(size_t byte) const;
  DrawnLine drawn(const Line& line) const;
  float indentOf(const DrawnLine& line) const {
    return line.leftwards() ? widest_ - line.width() : 0;
  }

  MarkdownBlock block_;
  const Fonts* fonts_ = nullptr;
  TextEdit edit_;
  std::vector<Line> lines_;
  float width_ = 0;
  float widest_ = 0;
  float font_size_ = 0;
};

}  // namespace desktop
