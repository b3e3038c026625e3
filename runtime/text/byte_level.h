// The alphabet of byte-level BPE vocabularies: every byte is written as one printable character.
// Bytes that are printable in Latin-1 stand for themselves, the other 68 for U+0100 .. U+0143 in
// order.
#pragma once

#include <cstdint>

namespace oriel {

/// The byte a character stands for, or -1.
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

}  // namespace oriel
