// What kind of character a code point is, as far as pre-tokenizers ask.
#pragma once

#include <cstdint>

namespace oriel {

/// General categories, except that kSpace is the property White_Space (all separators, and the
/// control characters among white space). The order is that of scripts/make_unicode_tables.py.
enum class CharClass : uint8_t {
  kOther,           ///< C*: controls, formats, private use, unassigned
  kUpper,           ///< Lu
  kLower,           ///< Ll
  kTitle,           ///< Lt
  kModifierLetter,  ///< Lm
  kOtherLetter,     ///< Lo
  kMark,            ///< M*
  kNumber,          ///< N*
  kPunctuation,     ///< P*
  kSymbol,          ///< S*
  kSpace,           ///< White_Space
};

extern const uint8_t kUnicodeBlockIndex[];
extern const uint32_t kUnicodeBlockIndexSize;
extern const uint8_t kUnicodeBlocks[];

/// Any value is accepted; what is not a code point is kOther.
inline CharClass charClass(uint32_t code_point) {
  constexpr uint32_t kBlock = 128;
  const uint32_t block = code_point / kBlock;
  const uint32_t last = kUnicodeBlockIndexSize - 1;
  const uint32_t row = kUnicodeBlockIndex[block < last ? block : last];
  const uint8_t pair = kUnicodeBlocks[(row * kBlock + code_point % kBlock) / 2];
  return static_cast<CharClass>((code_point & 1) != 0 ? pair >> 4 : pair & 15);
}

inline bool isLetter(CharClass c) { return c >= CharClass::kUpper && c <= CharClass::kOtherLetter; }

}  // namespace oriel
