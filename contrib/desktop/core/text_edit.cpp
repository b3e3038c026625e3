#include "text_edit.h"

#include <utility>

#include "utf8.h"

namespace desktop {
namespace {

bool isSpace(char c) { return c == ' ' || c == '\n' || c == '\t'; }

}  // namespace

void TextEdit::setText(std::string text) {
  text_ = std::move(text);
  caret_ = anchor_ = text_.size();
}

void TextEdit::insert(const std::string& text) {
  const size_t begin = selectionBegin();
  text_.replace(begin, selectionEnd() - begin, text);
  caret_ = anchor_ = begin + text.size();
}

void TextEdit::erase(bool forward, bool word) {
  if (caret_ == anchor_) {
    anchor_ = neighbour(forward, word);
  }
  insert("");
}

void TextEdit::moveTo(size_t offset, bool extend) {
  caret_ = std::min(offset, text_.size());
  if (!extend) {
    anchor_ = caret_;
  }
}

void TextEdit::step(bool forward, bool word, bool extend) {
  if (!extend && caret_ != anchor_) {
    moveTo(forward ? selectionEnd() : selectionBegin(), false);
  } else {
    moveTo(neighbour(forward, word), extend);
  }
}

void TextEdit::selectAll() {
  anchor_ = 0;
  caret_ = text_.size();
}

void TextEdit::selectWordAt(size_t offset) {
  anchor_ = caret_ = std::min(offset, text_.size());
  while (anchor_ > 0 && !isSpace(text_[anchor_ - 1])) {
    anchor_--;
  }
  while (caret_ < text_.size() && !isSpace(text_[caret_])) {
    caret_++;
  }
}

size_t TextEdit::neighbour(bool forward, bool word) const {
  if (!word) {
    return forward ? utf8::next(text_, caret_) : utf8::previous(text_, caret_);
  }
  size_t at = caret_;
  if (forward) {
    while (at < text_.size() && isSpace(text_[at])) at++;
    while (at < text_.size() && !isSpace(text_[at])) at++;
  } else {
    while (at > 0 && isSpace(text_[at - 1])) at--;
    while (at > 0 && !isSpace(text_[at - 1])) at--;
  }
  return at;
}

}  // namespace desktop
