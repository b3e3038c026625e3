// Selectable text in a column.
#pragma once

#include <string>
#include <vector>

#include "context.h"
#include "drawn_line.h"
#include "markdown.h"
#include "text_edit.h"
#include "wrapped_text.h"

namespace desktop {

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
