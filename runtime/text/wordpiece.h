// BERT's WordPiece: splits a text at blanks and punctuation into words, and a word into pieces. Each piece is the longest
// token that matches.
#pragma once

#include "text/tokenizer.h"

namespace oriel_internal {

/// Takes a text character by character. A word ends at a blank, at a punctuation mark, at an ideograph and at end().
class WordPieces {
 public:
  explicit WordPieces(const Tokenizer& tokenizer) : t_(tokenizer) {}

  /// emit(id) for the pieces of words that have ended.
  template <typename Emit>
  void add(uint32_t code_point, const Emit& emit) {
    if (isDropped(code_point)) {
      return;
    }
    const bool ideograph = isIdeograph(code_point);
    if (ideograph || isBlank(code_point)) {
      end(emit);
    }
    uint32_t parts[kMostDecomposed];
    const uint32_t count = partsOf(code_point, parts);
    for (uint32_t i = 0; i < count; ++i) {
      const bool alone = ideograph || isPunctuation(parts[i]);
      if (alone) {
        end(emit);
      }
      append(parts[i]);
      if (alone) {
        end(emit);
      }
    }
  }
  template <typename Emit>
  void end(const Emit& emit) {
    int32_t ids[kMostChars];
    const uint32_t count = split(ids);
    for (uint32_t i = 0; i < count; ++i) {
      emit(ids[i]);
    }
  }

 private:
  static constexpr uint32_t kMostChars = 100;  ///< a longer word is unknown

  static bool isDropped(uint32_t code_point);
  static bool isBlank(uint32_t code_point);
  static bool isIdeograph(uint32_t code_point);
  static bool isPunctuation(uint32_t code_point);
  /// Normalises a character: lower case and no accents if the file says so. Returns 0 parts for a blank.
  uint32_t partsOf(uint32_t code_point, uint32_t (&parts)[kMostDecomposed]) const;
  void append(uint32_t code_point);
  /// Writes the pieces of the finished word. Returns their number.
  uint32_t split(int32_t (&ids)[kMostChars]);

  const Tokenizer& t_;
  uint32_t n_chars_ = 0;
  uint32_t n_bytes_ = 0;
  char word_[1 + 4 * kMostChars];  ///< a space, which begins the first piece, and the word
};

}  // namespace oriel_internal
