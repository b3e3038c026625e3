// Editable text with a caret and a selection. Offsets are bytes, always between characters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

namespace desktop {

class TextEdit {
 public:
  const std::string& text() const { return text_; }
  size_t caret() const { return caret_; }
  size_t selectionBegin() const { return std::min(caret_, anchor_); }
  size_t selectionEnd() const { return std::max(caret_, anchor_); }
  std::string selected() const {
    return text_.substr(selectionBegin(), selectionEnd() - selectionBegin());
  }

  void setText(std::string text);
  /// Replaces the selection.
  void insert(const std::string& text);
  /// The selection, or else the character or word on one side.
  void erase(bool forward, bool word);
  /// `extend`: the selection grows to the offset; otherwise it is cleared.
  void moveTo(size_t offset, bool extend);
  void step(bool forward, bool word, bool extend);
  void selectAll();
  void selectWordAt(size_t offset);

 private:
  size_t neighbour(bool forward, bool word) const;

  std::string text_;
  size_t caret_ = 0;
  size_t anchor_ = 0;
};

}  // namespace desktop
