// Words of a text that comes in pieces, as numbers: for finding a text again by the words that another has in common with
// it. No language is known here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "text/utf8.h"

namespace oriel_internal {

/// A word is a run of letters, marks and digits. Its number is a hash of its first kStem characters, without case, so
/// that most endings make no difference; a plural's s is left out. Letters of scripts without case, which mostly write no
/// spaces between words, make a word of each pair of neighbours instead.
///
/// What is no word: one letter alone, where letters have case.
class WordReader {
 public:
  static constexpr uint32_t kStem = 5;
  static constexpr uint32_t kNone = 0;  ///< no word has this number

  void restart() { *this = WordReader(); }

  /// visit(number) for each word that ends in these bytes. The last one goes on until something else comes.
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
  /// The word that was going on; kNone: there was none.
  uint32_t finish() {
    n_pending_ = 0;
    return end();
  }

 private:
  /// The word that ends in front of this character, or with it.
  uint32_t take(uint32_t code_point);
  uint32_t end();

  char pending_[kMaxUtf8Bytes] = {};
  uint32_t n_pending_ = 0;
  uint32_t stem_[kStem] = {};
  uint32_t length_ = 0;  ///< characters of the word that goes on
  uint32_t last_ = 0;    ///< the latest of them
  uint32_t before_ = 0;  ///< the character before, where that has no case; 0: another
  bool digits_ = false;  ///< all of them are
};

/// Whether bytes, which may begin or end within a character, have any of a letter or digit.
bool hasWord(const char* text, size_t bytes);

}  // namespace oriel_internal
