// Strings of some length, pattern and format, as expressions.
#pragma once

#include "grammar/dfa.h"
#include "json/json.h"

namespace oriel_internal {

struct StringFacts {
  static constexpr uint32_t kMostPatterns = 8;

  uint32_t min_length = 0;
  uint32_t max_length = UINT32_MAX;
  JsonText patterns[kMostPatterns];
  uint32_t n_patterns = 0;
  JsonText formats[kMostPatterns];
  uint32_t n_formats = 0;

  bool isBounded() const {
    return min_length != 0 || max_length != UINT32_MAX || n_patterns != 0 || n_formats != 0;
  }
  bool operator==(const StringFacts& other) const;
};

/// As a pattern for the whole text; null: no format that is known.
const char* formatPattern(const JsonText& format);
/// Whether the pattern of a format has all texts that it allows: where it has fewer it tells nothing about a constant.
bool isFormatExact(const JsonText& format);

/// What satisfies all patterns and formats, of any length. False: it is too large, or one is not supported.
bool stringsDfa(const StringFacts& facts, Work* work, Dfa* dfa);

/// With its quotes. `character`: one of a JSON string, raw or escaped. `*expression` is kNever where nothing fits.
/// Otherwise null, or why there is none, said of the keyword. Patterns have been checked.
const char* stringExpression(const StringFacts& facts, ExprId character, Grammar* grammar,
                             ExprId* expression);

/// `what`, min to max times, in few states also where that is often: blocks of a rule stand for most of it.
ExprId countedExpression(ExprId what, uint32_t min, uint32_t max, Grammar* grammar);

}  // namespace oriel_internal
