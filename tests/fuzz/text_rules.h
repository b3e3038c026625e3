// What holds for every text with every vocabulary, good or hostile.
#pragma once

#include <string>

#include "support/tokenizer_case.h"

namespace oriel_internal::fuzz {

struct TextCase {
  std::string text;
  EncodeOptions options;  ///< without literal ranges
  size_t cut = 0;         ///< where the text is cut into parts, roughly
  size_t capacity = 1;    ///< of ids taken at a time, at least 1
};

/// Encodes, as a whole, in parts and into too little room, and decodes, as a whole and token by token. Returns what
/// the ids decode to, control tokens included, but for BOS and EOS.
std::string checkText(test::TokenizerCase* of, const TextCase& given);

}  // namespace oriel_internal::fuzz
