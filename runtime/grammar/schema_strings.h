// String formats as patterns.
#pragma once

#include "grammar/regex.h"
#include "json/json.h"

namespace oriel_internal {

/// Forms of a format: each has fewer and shorter texts than the previous one, for short strings.
constexpr uint32_t kFormatForms = 3;

/// A pattern for the whole text. Null: unknown format.
const char* formatPattern(const JsonText& format, uint32_t form = 0);
/// True if the pattern accepts every text of the format. A narrower pattern cannot reject a constant.
bool isFormatExact(const JsonText& format);

// Strings with length, pattern and format limits, as expressions.

struct StringFacts {
  static constexpr uint32_t kMostPatterns = 8;
  static constexpr uint32_t kMostExcluded = 16;

  uint32_t min_length = 0;
  uint32_t max_length = UINT32_MAX;
  JsonText patterns[kMostPatterns];
  uint32_t n_patterns = 0;
  JsonText formats[kMostPatterns];
  uint32_t n_formats = 0;
  /// Must not match in any engine.
  JsonText not_patterns[kMostExcluded];
  uint32_t n_not_patterns = 0;
  /// Lists (`enum`, `const`) of strings that the text must not equal.
  const JsonValue* not_listed[kMostExcluded] = {};
  uint32_t n_not_listed = 0;

  bool isBounded() const { return min_length != 0 || max_length != UINT32_MAX || hasPattern(); }
  bool hasPattern() const {
    return n_patterns != 0 || n_formats != 0 || n_not_patterns != 0 || n_not_listed != 0;
  }
  /// False: too many.
  bool excludePattern(const JsonText& pattern);
  bool excludeListed(const JsonValue& values);
  bool operator==(const StringFacts& other) const;
};

/// Texts of any length that satisfy all patterns and formats, ignoring exclusions. False: too large, or unsupported.
bool stringsDfa(const StringFacts& facts, RegexReading reading, Work* work, Dfa* dfa);

/// Includes the quotes. `character`: one raw or escaped character of a JSON string. `*expression` is kNever if nothing
/// fits. Returns null, or the reason why the keyword is unsupported. Patterns must have been checked.
const char* stringExpression(const StringFacts& facts, ExprId character, Grammar* grammar,
                             ExprId* expression);

/// `what`, min to max times. Large counts use few states, because most of them are blocks that are rules.
ExprId countedExpression(ExprId what, uint32_t min, uint32_t max, Grammar* grammar);

}  // namespace oriel_internal
