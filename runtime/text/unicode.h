// UTF-8, and classes of characters.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal {

// Decodes UTF-8 one character at a time, from possibly invalid bytes.

constexpr uint32_t kReplacementCharacter = 0xFFFD;
constexpr size_t kMaxUtf8Bytes = 4;  ///< of one character

struct Utf8Char {
  uint32_t code_point = kReplacementCharacter;
  /// Bytes consumed. For a broken sequence: its longest prefix that could have become a character, at least 1 (Unicode,
  /// section 3.9, "maximal subpart").
  uint32_t bytes = 0;
  bool valid = false;
  /// The bytes end inside the character: more of them could make it valid.
  bool incomplete = false;
};

/// `available` is at least 1. Refuses overlong forms, surrogates and values above U+10FFFF.
inline Utf8Char decodeUtf8(const char* text, size_t available) {
  Utf8Char result;
  const uint8_t lead = static_cast<uint8_t>(text[0]);
  result.bytes = 1;
  if (lead < 0x80) {
    result.code_point = lead;
    result.valid = true;
    return result;
  }
  if (lead < 0xC2 || lead > 0xF4) {
    return result;
  }
  const uint32_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // Only the second byte has special bounds (table 3-7 of the same section).
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  if (lead == 0xE0) {
    low = 0xA0;
  } else if (lead == 0xED) {
    high = 0x9F;
  } else if (lead == 0xF0) {
    low = 0x90;
  } else if (lead == 0xF4) {
    high = 0x8F;
  }
  uint32_t code_point = lead & (0xFFu >> (length + 1));
  while (result.bytes < length) {
    if (result.bytes == available) {
      result.incomplete = true;
      return result;
    }
    const uint8_t next = static_cast<uint8_t>(text[result.bytes]);
    if (next < low || next > high) {
      return result;
    }
    code_point = code_point << 6 | (next & 0x3Fu);
    ++result.bytes;
    low = 0x80;
    high = 0xBF;
  }
  result.code_point = code_point;
  result.valid = true;
  return result;
}

/// Writes a code point up to U+10FFFF; returns the bytes written, at most kMaxUtf8Bytes.
inline size_t encodeUtf8(uint32_t code_point, char* out) {
  if (code_point < 0x80) {
    out[0] = static_cast<char>(code_point);
    return 1;
  }
  const size_t bytes = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
  for (size_t i = bytes - 1; i > 0; --i, code_point >>= 6) {
    out[i] = static_cast<char>(0x80 | (code_point & 0x3F));
  }
  constexpr uint8_t kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  out[0] = static_cast<char>(kLead[bytes] | code_point);
  return bytes;
}

/// True for valid UTF-8; otherwise *bad is the start of the first broken character.
inline bool isValidUtf8(const char* text, size_t bytes, size_t* bad) {
  for (size_t at = 0; at < bytes;) {
    const Utf8Char next = decodeUtf8(text + at, bytes - at);
    if (!next.valid) {
      *bad = at;
      return false;
    }
    at += next.bytes;
  }
  return true;
}

// The alphabet of byte-level BPE vocabularies, which writes every byte as one printable character. Bytes that are
// printable in Latin-1 map to themselves, the other 68 to U+0100 .. U+0143 in order.

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

// Character classes of code points for pre-tokenizers.

/// General categories, except that kSpace is the property White_Space (all separators and the white space controls). The
/// order must match scripts/make_unicode_tables.py.
enum class CharClass : uint8_t {
  kOther,           ///< C*: controls, formats, private use, unassigned
  kUpper,           ///< Lu
  kLower,           ///< Ll
  kTitle,           ///< Lt
  kModifierLetter,  ///< Lm
  kOtherLetter,     ///< Lo
  kMark,            ///< M*
  kDigit,           ///< Nd
  kNumber,          ///< Nl, No
  kPunctuation,     ///< P*
  kSymbol,          ///< S*
  kSpace,           ///< White_Space
};

struct CodePointRange {
  uint32_t first;
  uint32_t last;
};

extern const uint8_t kUnicodeRowIndex[];
extern const uint32_t kUnicodeRowIndexSize;
extern const uint16_t kUnicodeRows[];
extern const uint8_t kUnicodeBlocks[];
extern const CodePointRange kHanRanges[];
extern const uint32_t kHanRangeCount;
extern const uint32_t kSpacingMarks[];
extern const uint32_t kSpacingMarkCount;

/// Accepts any value; values that are not code points are kOther.
inline CharClass charClass(uint32_t code_point) {
  constexpr uint32_t kBlock = 16;
  constexpr uint32_t kRow = 32;
  const uint32_t last = kUnicodeRowIndexSize - 1;
  const uint32_t place = code_point / (kBlock * kRow);
  const uint32_t row = kUnicodeRowIndex[place < last ? place : last];
  const uint32_t block = kUnicodeRows[row * kRow + code_point / kBlock % kRow];
  const uint8_t pair = kUnicodeBlocks[(block * kBlock + code_point % kBlock) / 2];
  return static_cast<CharClass>((code_point & 1) != 0 ? pair >> 4 : pair & 15);
}

inline bool isLetter(CharClass c) { return c >= CharClass::kUpper && c <= CharClass::kOtherLetter; }

inline bool isNumber(CharClass c) { return c == CharClass::kDigit || c == CharClass::kNumber; }

/// `ranges` must be sorted and disjoint.
inline bool isInRanges(uint32_t code_point, const CodePointRange* ranges, uint32_t count) {
  uint32_t low = 0;
  uint32_t high = count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (ranges[middle].last < code_point) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < count && ranges[low].first <= code_point;
}

/// A mark without room of its own (Mn), such as an accent. `code_point` is a mark.
inline bool isNonSpacing(uint32_t code_point) {
  uint32_t low = 0;
  uint32_t high = kSpacingMarkCount;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (kSpacingMarks[middle] >> 8 <= code_point) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 || code_point - (kSpacingMarks[low - 1] >> 8) >= (kSpacingMarks[low - 1] & 0xFF);
}

/// The script Han.
inline bool isHan(uint32_t code_point) {
  return isInRanges(code_point, kHanRanges, kHanRangeCount);
}

}  // namespace oriel_internal
