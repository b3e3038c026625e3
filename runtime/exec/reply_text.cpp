#include "exec/reply_text.h"

#include <cstring>

#include "base/wipe.h"

namespace oriel_internal {

void ReplyText::start(const char* const* stop_texts, size_t count) {
  decoder_.reset(false);
  stop_texts_.start(stop_texts, count);
  stopped_ = false;
  n_shown_ = n_text_ = 0;
}

void ReplyText::forget() {
  decoder_.forget();
  stop_texts_.forget();
  wipe(text_, sizeof(text_));
  start(nullptr, 0);
}

ReplyText::Shown ReplyText::push(Tokenizer::Piece piece, bool may_stop) {
  Shown shown;
  decoder_.push(piece, &shown.text, &shown.bytes);
  return stop_texts_.any() ? pass(shown.text, shown.bytes, may_stop, false) : shown;
}

ReplyText::Shown ReplyText::finish(bool may_stop) {
  decoder_.reset(false);  // drops an incomplete character: later tokens might have completed it
  return stop_texts_.any() ? pass("", 0, may_stop, true) : Shown{text_, 0, false};
}

ReplyText::Shown ReplyText::breakOff(bool may_stop) {
  Shown shown;
  decoder_.finish(&shown.text, &shown.bytes);
  if (stop_texts_.any()) {
    shown = pass(shown.text, shown.bytes, may_stop, true);
    stop_texts_.restart();
  }
  return shown;
}

// Stop texts and the text are both UTF-8, so a stop text begins at a character.
ReplyText::Shown ReplyText::pass(const char* text, size_t bytes, bool may_stop, bool ends) {
  if (stopped_) {
    return {text_, 0, true};
  }
  n_text_ -= n_shown_;
  std::memmove(text_, text_ + n_shown_, n_text_);
  n_shown_ = 0;
  for (size_t i = 0; i < bytes; ++i) {
    text_[n_text_++] = text[i];
    const uint32_t found = stop_texts_.accept(text[i]);
    if (found != 0 && may_stop) {
      stopped_ = true;
      n_shown_ = n_text_ - found;
      return {text_, n_shown_, true};
    }
  }
  n_shown_ = ends ? n_text_ : n_text_ - stop_texts_.begun();
  return {text_, n_shown_, false};
}

}  // namespace oriel_internal
