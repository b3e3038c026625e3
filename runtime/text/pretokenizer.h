// Splits text into words that BPE merges cannot cross. Hand-written matchers for the regular expressions of published
// models; each takes linear time.
#pragma once

#include <cstddef>

#include "gguf/gguf.h"
#include "text/pretokenizer_staged.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// The rules for a name in tokenizer.ggml.pre.
struct PreTokenizerRules {
  PreTokenizer pre = PreTokenizer::kNone;
  /// A word that is a token takes precedence over merges.
  bool whole_words = false;
  /// BOS is added unless the file says otherwise.
  bool add_bos = false;
  /// Words are split and merged in Normalisation Form C.
  bool nfc = false;
};

/// False for an unknown name.
bool preTokenizerByName(const GgufString& name, PreTokenizerRules* rules);
/// "smollm"; a NUL-terminated constant.
const char* preTokenizerName(PreTokenizer pre);

/// Splits one text. Its state only saves work; the words do not depend on it.
class WordCutter {
 public:
  /// `text` must outlive it; the last word ends at `end`.
  WordCutter(PreTokenizer pre, const char* text, size_t end) : pre_(pre), text_(text), end_(end) {}

  /// End of the word that begins at `begin`; begin < result <= end. Linear in the text if all words are requested in
  /// order. Text before `begin` is ignored. An invalid byte counts as one symbol, like U+FFFD.
  //
  /// *reached_end (may be null) becomes true if the answer depends on the text's end, so that more text could change it.
  size_t wordEnd(size_t begin, bool* reached_end = nullptr);

 private:
  PreTokenizer pre_;
  const char* text_;
  size_t end_;
  DigitCount count_;
};

}  // namespace oriel_internal
