// The words of a text in pieces, as numbers: for finding a text by shared words. Independent of the language.
#pragma once

#include <cstddef>
#include <cstdint>

#include "text/utf8.h"

namespace oriel_internal {

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
