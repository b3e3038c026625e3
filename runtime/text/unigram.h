// Unigram as SentencePiece has it (Kudo, "Subword Regularization", 2018): a text is normalised by a map of the file, then
// cut into the tokens whose scores have the largest sum.
#pragma once

#include "text/tokenizer.h"

namespace oriel_internal {

/// What the words of one text have in common. Words come in order.
class Unigram {
 public:
  explicit Unigram(const Tokenizer& tokenizer) : t_(tokenizer) {}

  /// A special token ends a text: the next word begins one.
  void begin(bool prefix) {
    prefix_ = prefix;
    after_space_ = true;
    unknown_ = false;
  }
  /// A word may end before the space at `at`: what stands there does not become a space itself.
  bool endsWord(const char* text, size_t at) const;
  /// Bytes that normalise() writes at most.
  size_t normalBytes(const char* word, size_t bytes) const;
  /// Writes the word as it is looked up.
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
    // Turns the way round: `from` becomes the border behind.
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
  bool after_space_ = true;  ///< the last character was one, or there was none
  bool unknown_ = false;     ///< the last token was the unknown one, which a run has once
};

}  // namespace oriel_internal
