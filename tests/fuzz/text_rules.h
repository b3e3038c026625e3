// Invariants for every text with every vocabulary, good or hostile.
#pragma once

#include <string>
#include <vector>

#include "support/tokenizer_case.h"

namespace oriel_internal::fuzz {

struct TextCase {
  std::string text;
  EncodeOptions options;  ///< without literal ranges
  size_t cut = 0;         ///< approximate split position
  size_t capacity = 1;    ///< of ids taken at a time, at least 1
};

/// Encodes the text whole, in parts and into a buffer that is too small, and decodes it whole and token by token.
/// Returns the decoded text with control tokens, but without BOS and EOS.
std::string checkText(test::TokenizerCase* of, const TextCase& given);

// Elements of chat templates, and their mistakes.

/// Expressions, statements, values, names and ends for templates and their inputs.
std::vector<std::string> templateWords();

/// Misuses of every filter, test, method and operator: one per template, since a mistake ends it.
std::vector<std::string> templateMistakes();

}  // namespace oriel_internal::fuzz
