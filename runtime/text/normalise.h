// Letter case, normal forms, and words of texts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "text/unicode.h"

namespace oriel_internal {

// Capital and small letters.

/// The other case of a Latin, Greek, Cyrillic, Armenian or full-width letter. Other code points, and letters whose other
/// case has several letters, are returned unchanged.
uint32_t toUpper(uint32_t code_point);
uint32_t toLower(uint32_t code_point);

// Tables of canonical decomposition and composition (Unicode Standard Annex 15).

/// One decomposition step: a code point becomes two others, or a single one if the second is 0.
struct WideDecomposition {
  uint32_t code;
  uint32_t first;
  uint32_t second;
};

/// Steps within 16 bits, in the order of kDecomposed; the second is kSeconds[kDecomposedSecond[i]].
extern const uint16_t kDecomposed[];
extern const uint16_t kDecomposedFirst[];
extern const uint8_t kDecomposedSecond[];
extern const uint16_t kSeconds[];
/// The first kComposingSecondCount seconds are sorted. Only steps with these seconds recompose.
extern const uint32_t kComposingSecondCount;
extern const uint32_t kDecomposedCount;
/// The others, sorted by code. The first of them recompose.
extern const WideDecomposition kWideDecompositions[];
extern const uint32_t kWideDecompositionCount;
extern const uint32_t kWideCompositionCount;
/// CJK compatibility ideographs in two consecutive blocks: the low 16 bits of the canonical equivalent (0: none), and a
/// bit that says if the equivalent is in plane 2.
constexpr CodePointRange kIdeographBlocks[] = {{0xF900, 0xFAD9}, {0x2F800, 0x2FA1D}};
extern const uint16_t kIdeographs[];
extern const uint8_t kIdeographsOfPlane2[];
/// Sorted ranges of code points, first << 8 | combining class, and their lengths. All others have class 0.
extern const uint32_t kCombining[];
extern const uint8_t kCombiningCounts[];
extern const uint32_t kCombiningRangeCount;
/// Class 0 with NFC_Quick_Check other than Yes. A text without these and without combining classes is in NFC.
extern const CodePointRange kOthersChangedByNfc[];
extern const uint32_t kOthersChangedByNfcCount;

// Normalisation Form C (Unicode Standard Annex 15) of UTF-8.

/// Largest growth of a text in NFC, as a factor of its bytes.
constexpr size_t kMostNfcGrowth = 3;

/// The first character that NFC may change, alone or with its neighbours; `bytes`: none.
size_t firstChangedByNfc(const char* text, size_t bytes);
/// Characters in the canonical decomposition; invalid bytes count as one each.
size_t decomposedChars(const char* text, size_t bytes);
/// Writes the NFC of a text and returns its size. `chars` has room for decomposedChars(), `out` for kMostNfcGrowth *
/// bytes. Invalid bytes are kept. Time is n log n in the longest run of combining marks.
size_t toNfc(const char* text, size_t bytes, uint64_t* chars, char* out);

/// The canonical decomposition of one character; how many characters that is.
constexpr uint32_t kMostDecomposed = 9;
uint32_t decomposed(uint32_t code_point, uint32_t (&out)[kMostDecomposed]);

// The words of a text in pieces, as numbers: for finding a text by shared words. Independent of the language.

/// A word is a run of letters, marks and digits. Its number is a hash of its first kStem characters without case, so
/// that most endings do not matter; a plural s is dropped. In scripts without case, which rarely separate words by
/// spaces, each pair of adjacent letters is a word.
//
/// A single letter of a script with case is not a word.
class WordReader {
 public:
  static constexpr uint32_t kStem = 5;
  static constexpr uint32_t kNone = 0;  ///< not a word's number

  void restart() { *this = WordReader(); }

  /// visit(number) for each word that ends in these bytes. The last word stays open until another character.
  template <typename Visit>
  void push(const char* text, size_t bytes, const Visit& visit) {
    for (size_t i = 0; i < bytes; ++i) {
      pending_[n_pending_++] = text[i];
      while (n_pending_ != 0) {
        const Utf8Char next = decodeUtf8(pending_, n_pending_);
        if (next.incomplete) {
          break;
        }
        n_pending_ -= next.bytes;
        for (uint32_t k = 0; k < n_pending_; ++k) {
          pending_[k] = pending_[k + next.bytes];
        }
        const uint32_t word = take(next.code_point);
        if (word != kNone) {
          visit(word);
        }
      }
    }
  }
  /// Ends the open word; kNone: none.
  uint32_t finish() {
    n_pending_ = 0;
    return end();
  }

 private:
  /// The word that ends before or with this character.
  uint32_t take(uint32_t code_point);
  uint32_t end();

  char pending_[kMaxUtf8Bytes] = {};
  uint32_t n_pending_ = 0;
  uint32_t stem_[kStem] = {};
  uint32_t length_ = 0;  ///< characters of the open word
  uint32_t last_ = 0;    ///< the latest of them
  uint32_t before_ = 0;  ///< the previous character, if its script has no case; otherwise 0
  bool digits_ = false;  ///< all of them are
};

/// True if the bytes, which may split a character at either end, contain a letter or digit.
bool hasWord(const char* text, size_t bytes);

}  // namespace oriel_internal
