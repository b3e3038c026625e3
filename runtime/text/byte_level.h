// The alphabet of byte-level BPE vocabularies, which writes every byte as one printable character. Bytes that are
// printable in Latin-1 map to themselves, the other 68 to U+0100 .. U+0143 in order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "text/utf8.h"

namespace oriel_internal {

/// The byte of a character, or -1.
constexpr int byteOfCharacter(uint32_t code_point) {
  if ((code_point >= 0x21 && code_point <= 0x7E) || (code_point >= 0xA1 && code_point <= 0xAC) ||
      (code_point >= 0xAE && code_point <= 0xFF)) {
    return static_cast<int>(code_point);
  }
  if (code_point >= 0x100 && code_point <= 0x120) {
    return static_cast<int>(code_point - 0x100);  // 0x00 .. 0x20
  }
  if (code_point >= 0x121 && code_point <= 0x142) {
    return static_cast<int>(code_point - 0x121 + 0x7F);  // 0x7F .. 0xA0
  }
  return code_point == 0x143 ? 0xAD : -1;
}

/// Decodes text in the byte-level alphabet; false if it contains another character.
inline bool decodeByteLevel(const char* text, size_t bytes, char* out, size_t* n_out) {
  *n_out = 0;
  for (size_t at = 0; at < bytes;) {
    const Utf8Char c = decodeUtf8(text + at, bytes - at);
    const int byte = c.valid ? byteOfCharacter(c.code_point) : -1;
    if (byte < 0) {
      return false;
    }
    out[(*n_out)++] = static_cast<char>(byte);
    at += c.bytes;
  }
  return true;
}

}  // namespace oriel_internal
