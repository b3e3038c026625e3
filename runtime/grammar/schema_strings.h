// Strings of some length, pattern and format, as expressions.
#pragma once

#include "grammar/regex.h"
#include "json/json.h"

namespace oriel_internal {

struct StringFacts {
  static constexpr uint32_t kMostPatterns = 8;
  static constexpr uint32_t kMostExcluded = 16;

  uint32_t min_length = 0;
  uint32_t max_length = UINT32_MAX;
  JsonText patterns[kMostPatterns];
  uint32_t n_patterns = 0;
  JsonText formats[kMostPatterns];
  uint32_t n_formats = 0;
  /// Not matched by any engine.
  JsonText not_patterns[kMostExcluded];
  uint32_t n_not_patterns = 0;
  /// Not one of the strings of `enum`, `const` or a list.
  const JsonValue* not_listed[kMostExcluded] = {};
  uint32_t n_not_listed = 0;

  bool isBounded() const { return min_length != 0 || max_length != UINT32_MAX || hasPattern(); }
  bool hasPattern() const {
    return n_patterns != 0 || n_formats != 0 || n_not_patterns != 0 || n_not_listed != 0;
  }
  /// False: there are too many.
  bool excludePattern(const JsonText& pattern);
  bool excludeListed(const JsonValue& values);
  bool operator==(const StringFacts& other) const;
};

/// What satisfies all patterns and formats, of any length, whatever is excluded. False: it is too large, or one is not supported.
bool stringsDfa(const StringFacts& facts, RegexReading reading, Work* work, Dfa* dfa);

/// With its quotes. `character`: one of a JSON string, raw or escaped. `*expression` is kNever where nothing fits.
/// Otherwise null, or why there is none, said of the keyword. Patterns have been checked.
const char* stringExpression(const StringFacts& facts, ExprId character, Grammar* grammar,
                             ExprId* expression);

/// `what`, min to max times, in few states also where that is often: blocks of a rule stand for most of it.
ExprId countedExpression(ExprId what, uint32_t min, uint32_t max, Grammar* grammar);

}  // namespace oriel_internal
