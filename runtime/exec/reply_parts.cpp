#include "exec/replier.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"

namespace oriel_internal {

void StopTexts::start(const char* const* texts, size_t count) {
  count_ = static_cast<uint32_t>(count);
  for (uint32_t i = 0; i < count_; ++i) {
    texts_[i].set(texts[i]);
  }
}

void StopTexts::forget() {
  wipe(texts_, sizeof(texts_));
  count_ = 0;
}

void StopTexts::Text::set(const char* from) {
  bytes = static_cast<uint32_t>(std::strlen(from));
  begun = 0;
  std::memcpy(text, from, bytes);
  border[0] = 0;
  for (uint32_t i = 1; i < bytes; ++i) {
    border[i] = static_cast<uint8_t>(after(border[i - 1], text[i]));
  }
}

uint32_t StopTexts::Text::after(uint32_t begun_before, char byte) const {
  while (begun_before != 0 && text[begun_before] != byte) {
    begun_before = border[begun_before - 1];
  }
  return text[begun_before] == byte ? begun_before + 1 : 0;
}

uint32_t StopTexts::accept(char byte) {
  uint32_t longest = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    Text& text = texts_[i];
    text.begun = text.after(text.begun, byte);
    if (text.begun == text.bytes) {
      longest = std::max(longest, text.bytes);
      text.begun = text.border[text.bytes - 1];
    }
  }
  return longest;
}

void StopTexts::restart() {
  for (uint32_t i = 0; i < count_; ++i) {
    texts_[i].begun = 0;
  }
}

uint32_t StopTexts::begun() const {
  uint32_t most = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    most = std::max(most, texts_[i].begun);
  }
  return most;
}

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

namespace {

oriel_part_kind publicKindOf(PartKind kind) {
  switch (kind) {
    case PartKind::kText:
      return ORIEL_PART_TEXT;
    case PartKind::kThought:
      return ORIEL_PART_THOUGHT;
    case PartKind::kCallBegun:
      return ORIEL_PART_CALL_BEGUN;
    case PartKind::kCallArguments:
      return ORIEL_PART_CALL_ARGUMENTS;
    case PartKind::kCallEnded:
      return ORIEL_PART_CALL_ENDED;
  }
  return ORIEL_PART_TEXT;
}

}  // namespace

void ReplyParts::start(const ReplySettings& settings, const PartListener& listener, bool reads) {
  listener_ = listener;
  stopped_ = false;
  reads_ = reads || listener.on_part != nullptr;
  reader_.start(settings, tell, this);
  values_.start(listener.values ? tellValue : nullptr, this);
}

void ReplyParts::tell(const ReplyPart& part, void* user) {
  ReplyParts& self = *static_cast<ReplyParts*>(user);
  self.tell(publicKindOf(part.kind), part.call, part.text, part.bytes, nullptr);
  if (part.kind == PartKind::kText) {
    self.values_.push(part.text, part.bytes);
  }
}

void ReplyParts::tellValue(JsonEvent event, const char* path, const char* text, size_t bytes,
                           void* user) {
  constexpr oriel_part_kind kKinds[] = {ORIEL_PART_STRING, ORIEL_PART_LITERAL,
                                        ORIEL_PART_VALUE_ENDED};
  static_cast<ReplyParts*>(user)->tell(kKinds[static_cast<size_t>(event)], 0, text, bytes, path);
}

void ReplyParts::tell(oriel_part_kind kind, uint32_t call, const char* text, size_t bytes,
                      const char* path) {
  if (stopped_ || listener_.on_part == nullptr) {
    return;
  }
  oriel_part told = {};
  told.struct_size = sizeof(told);
  told.kind = kind;
  told.call = call;
  told.text = text;
  told.text_bytes = bytes;
  told.path = path;
  stopped_ = listener_.on_part(&told, listener_.user) != 0;
}

void ThoughtCap::count(const ReplyReader& reader) {
  tokens_ += thinks_ && reader.inThought() ? 1 : 0;
  thinks_ = reader.inThought();
  closing_ = closing_ && thinks_;
}

Status ThoughtCap::close(const ReplyReader& reader, const Tokenizer& tokenizer,
                         Workspace* workspace) {
  thinks_ = reader.inThought();
  if (!active() || !thinks_ || tokens_ < most_ || closing_) {
    return kOk;
  }
  closing_ = true;
  const char* const end = reader.thoughtEnd();
  taken_ = 0;
  n_ids_ = 1;
  ids_[0] = tokenizer.find(end, std::strlen(end));
  if (ids_[0] >= 0) {
    return kOk;
  }
  const char* const rest = end + reader.thoughtEndBegun();
  EncodeOptions options;
  options.special = true;
  options.continues = true;
  size_t count = 0;
  ORIEL_TRY(tokenizer.encode(rest, std::strlen(rest), options, workspace, Log(), ids_, kMostMark,
                             &count));
  n_ids_ = static_cast<uint32_t>(count);
  return kOk;
}

}  // namespace oriel_internal
