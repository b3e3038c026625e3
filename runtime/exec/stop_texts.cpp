#include "exec/stop_texts.h"

#include <algorithm>
#include <cstring>

#include "base/wipe.h"

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

}  // namespace oriel_internal
