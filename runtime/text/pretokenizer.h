// Cuts text into the words that BPE merges may not leave. Hand-written matchers for the regular
// expressions that models were trained with; each is linear in the text.
#pragma once

#include <cstddef>

#include "gguf/gguf.h"
#include "text/pretokenizer_staged.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// What a name in tokenizer.ggml.pre stands for.
struct PreTokenizerRules {
  PreTokenizer pre = PreTokenizer::kNone;
  /// A word that is a token is taken whole, whatever the merges would make of it.
  bool whole_words = false;
  /// BOS is asked for where the file does not say.
  bool add_bos = false;
  /// Words are cut and merged in Normalisation Form C.
  bool nfc = false;
};

/// False when the name is not known here.
bool preTokenizerByName(const GgufString& name, PreTokenizerRules* rules);
/// "smollm"; a NUL-terminated constant.
const char* preTokenizerName(PreTokenizer pre);

/// Cuts one text. Its state only spares work: the words do not depend on it.
class WordCutter {
 public:
  /// `text` must outlive it; the words end at `end`.
  WordCutter(PreTokenizer pre, const char* text, size_t end) : pre_(pre), text_(text), end_(end) {}

  /// End of the word that begins at `begin`; begin < result <= end, in time linear in the whole text if all
  /// its words are asked for in order. Text before `begin` does not matter. A byte that is not UTF-8 counts
  /// as one symbol, as U+FFFD would.
  ///
  /// *reached_end (may be null) becomes true when the answer depended on where the text ends: more text could
  /// change it. Otherwise the word is the same whatever follows.
  size_t wordEnd(size_t begin, bool* reached_end = nullptr);

 private:
  PreTokenizer pre_;
  const char* text_;
  size_t end_;
  DigitCount count_;
};

}  // namespace oriel_internal
