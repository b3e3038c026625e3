// SentencePiece's unigram tokenizer (Kudo, "Subword Regularization", 2018): normalises a text by a map in the file, then
// cuts it into the tokens with the largest sum of scores.
#pragma once

#include "text/tokenizer.h"

namespace oriel_internal {

/// Splits the words of one text, in order. Keeps the state that one word leaves for the next.
class Unigram {
 public:
  explicit Unigram(const Tokenizer& tokenizer) : t_(tokenizer) {}

  /// Call at the start of a text and after each special token.
  void begin(bool prefix) {
    prefix_ = prefix;
    after_space_ = true;
    unknown_ = false;
  }
  /// True if a word may end before the space at `at`: the normalised text before it is not empty and ends with no space.
  bool endsWord(const char* text, size_t at) const;
  /// Bytes that normalise() writes at most.
  size_t normalBytes(const char* word, size_t bytes) const;
  /// Writes the normalised word, the form that split() takes. Returns its bytes.
  size_t normalise(const char* word, size_t bytes, char* out);
  /// emit(id) for the tokens of a normalised word. `steps` has room for bytes + 1.
  struct Step {
    double score;
    int32_t id;
    uint32_t from;
  };
  template <typename Emit>
  void split(const char* word, size_t bytes, Step* steps, const Emit& emit) {
    findBest(word, static_cast<uint32_t>(bytes), steps);
    // Reverse the path: `from` becomes the end of the token.
    for (uint32_t at = static_cast<uint32_t>(bytes), behind = 0;;) {
      const uint32_t before = steps[at].from;
      steps[at].from = behind;
      behind = at;
      if (at == 0) {
        break;
      }
      at = before;
    }
    for (uint32_t at = steps[0].from; at != 0; at = steps[at].from) {
      const bool unknown = steps[at].id == t_.unknown_id_;
      if (steps[at].id >= 0 && !(unknown && unknown_)) {
        emit(steps[at].id);
      }
      unknown_ = unknown;
    }
  }

 private:
  struct Mapped {
    const char* data = nullptr;
    size_t bytes = 0;
    size_t taken = 0;  ///< of the text
  };
  Mapped mapOne(const char* text, size_t bytes) const;
  void findBest(const char* word, uint32_t bytes, Step* steps) const;

  const Tokenizer& t_;
  bool prefix_ = true;       ///< no word has had its space yet
  bool after_space_ = true;  ///< after a space or at the start
  bool unknown_ = false;     ///< the last token was unknown; a run of them is one token
};

// BERT's WordPiece: splits a text at blanks and punctuation into words, and a word into pieces. Each piece is the longest
// token that matches.

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
