// Character classes of code points for pre-tokenizers.
#pragma once

#include <cstdint>

namespace oriel_internal {

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
