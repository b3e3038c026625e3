// The tokenizer data in a file: its kind and its lists, found and counted but not yet read.
#pragma once

#include <cstdint>

#include "base/log.h"
#include "gguf/gguf.h"
#include "text/pretokenizer.h"
#include "text/tokenizer.h"

namespace oriel_internal {

class TokenizerSource {
 public:
  TokenizerSource(const GgufFile& file, const Log& log) : file_(file), log_(log) {}

  /// Finds everything below; errors name the missing or unknown key.
  Status read();
  /// The error for a missing or unreadable key.
  Status missing(const char* key) const;

  TokenizerKind kind = TokenizerKind::kBpe;
  PreTokenizerRules rules;
  bool pre_guessed = false;  ///< the file names none, as with old converters
  bool has_types = false;
  GgufArray tokens;
  GgufArray types;   ///< if has_types: the type of each token
  GgufArray scores;  ///< SPM and unigram: the score of each token
  GgufArray map;     ///< unigram: bytes, may be empty
  GgufArray merges;  ///< both kinds of BPE
  uint32_t n_vocab = 0;
  uint32_t n_merges = 0;
  bool hasScores() const { return kind == TokenizerKind::kSpm || kind == TokenizerKind::kUnigram; }
  bool hasMerges() const { return kind == TokenizerKind::kBpe || kind == TokenizerKind::kCharBpe; }

 private:
  Status readKind();
  void guessPreTokenizer();
  Status readArrays();
  /// An array with one entry per token.
  Status readParallel(const char* key, GgufArray* array);

  const GgufFile& file_;
  const Log& log_;
};

}  // namespace oriel_internal
