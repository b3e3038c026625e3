// Stretches of a message: finding and trimming in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "text/chat.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace oriel_internal {

/// Bytes of somebody's text.
struct Slice {
  const char* data = nullptr;
  size_t bytes = 0;
};

inline Slice sliceOf(const char* text) { return {text, std::strlen(text)}; }

inline bool startsWith(Slice text, Slice part) {
  return part.bytes <= text.bytes && std::memcmp(text.data, part.data, part.bytes) == 0;
}

/// The first or last place of `part`, or text.bytes.
inline size_t findFirst(Slice text, const char* part) {
  const Slice wanted = sliceOf(part);
  for (size_t at = 0; at + wanted.bytes <= text.bytes; ++at) {
    if (startsWith({text.data + at, text.bytes - at}, wanted)) {
      return at;
    }
  }
  return text.bytes;
}

inline size_t findLast(Slice text, const char* part) {
  const Slice wanted = sliceOf(part);
  for (size_t at = text.bytes + 1; at-- > 0;) {
    if (startsWith({text.data + at, text.bytes - at}, wanted)) {
      return at;
    }
  }
  return text.bytes;
}

inline bool isSpaceAt(Slice text, size_t at, size_t* bytes) {
  const Utf8Char c = decodeUtf8(text.data + at, text.bytes - at);
  *bytes = c.bytes;
  // Separators of files and records count as white space where templates come from.
  return c.valid && (charClass(c.code_point) == CharClass::kSpace ||
                     (c.code_point >= 0x1C && c.code_point <= 0x1F));
}

inline Slice trimmed(Slice text, Trim trim) {
  size_t bytes = 0;
  while ((trim & kTrimStart) != 0 && text.bytes != 0 && isSpaceAt(text, 0, &bytes)) {
    text.data += bytes;
    text.bytes -= bytes;
  }
  while ((trim & kTrimEnd) != 0 && text.bytes != 0) {
    size_t at = text.bytes - 1;
    while (at > 0 && text.bytes - at < 4 && (static_cast<uint8_t>(text.data[at]) & 0xC0) == 0x80) {
      --at;
    }
    if (!isSpaceAt(text, at, &bytes) || at + bytes != text.bytes) {
      break;
    }
    text.bytes = at;
  }
  return text;
}

inline Slice withoutLines(Slice text, Trim ends) {
  while ((ends & kTrimStart) != 0 && text.bytes != 0 && text.data[0] == '\n') {
    ++text.data;
    --text.bytes;
  }
  while ((ends & kTrimEnd) != 0 && text.bytes != 0 && text.data[text.bytes - 1] == '\n') {
    --text.bytes;
  }
  return text;
}

}  // namespace oriel_internal
