// Numbers, formats and patterns in JSON schemas.
#pragma once

#include <cstdint>

#include "grammar/automaton.h"
#include "grammar/dfa.h"
#include "grammar/expression.h"
#include "json/json.h"

namespace oriel_internal {

// Exact JSON numbers.

/// Digits before the point (at least one, no leading zeros), then digits after it (no trailing zeros).
struct Decimal {
  static constexpr uint32_t kMostDigits = 120;

  bool negative = false;  ///< never of zero
  uint8_t n_whole = 1;
  uint8_t n_fraction = 0;
  char digits[kMostDigits] = {'0'};

  bool isZero() const { return n_whole == 1 && n_fraction == 0 && digits[0] == '0'; }
  bool isInteger() const { return n_fraction == 0; }
  /// Digit i of the fraction, '0' past its end.
  char fraction(uint32_t i) const { return i < n_fraction ? digits[n_whole + i] : '0'; }
  /// Counted from the first to the last nonzero digit.
  uint32_t significantDigits() const;
};

/// Parses a JSON number. False: too many digits.
bool readDecimal(const JsonText& text, Decimal* decimal);
/// Clamps a number that is too large to kMostDigits digits.
bool readBound(const JsonText& text, Decimal* decimal);
Decimal decimalOf(int64_t value);
/// Negative, 0 or positive, as a is less than, equal to or greater than b.
int compareDecimals(const Decimal& a, const Decimal& b);
/// Reads an integer from 0 to `most`; false for anything else.
bool asCount(const JsonValue& value, uint32_t most, uint32_t* count);

/// digits / 10^places. 10 and 2^64 do not divide digits.
struct Step {
  uint64_t digits = 0;  ///< 0: none
  uint32_t places = 0;
};
/// False if not positive, or with more than 15 digits or 20 places.
bool asStep(const Decimal& decimal, Step* step);
/// True if a validator that divides floating-point numbers accepts digits / 10^places as a multiple.
bool dividesAsDouble(uint64_t digits, uint32_t places, const Step& step);
/// Checks exactly, and also as doubles if there is a fraction.
bool isMultiple(const Decimal& value, const Step& step);

// Numbers with bounds and multiples, as expressions.

struct NumberFacts {
  static constexpr uint32_t kMostSteps = 4;

  bool integer = false;
  bool fraction = false;  ///< no integer
  bool has_min = false;
  bool has_max = false;
  bool above_min = false;  ///< the bound is exclusive
  bool below_max = false;
  Decimal min;
  Decimal max;
  Step steps[kMostSteps];  ///< must be a multiple of each
  uint32_t n_steps = 0;

  void addMin(const Decimal& bound, bool exclusive);
  void addMax(const Decimal& bound, bool exclusive);
  /// False: too many.
  bool addStep(const Step& step);
  bool isBounded() const { return has_min || has_max || n_steps != 0; }
  bool allows(const Decimal& value) const;
  bool operator==(const NumberFacts& other) const;
};

/// Integers are limited to those a double holds exactly. Other numbers have at most 15 digits, and without bounds an
/// exponent of at most two digits. `*expression` is kNever if no number fits. Returns null, or the reason why the
/// keyword is unsupported.
const char* numberExpression(const NumberFacts& facts, Grammar* grammar, ExprId* expression);

// String formats as patterns.

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

// Compares a schema's patterns and formats with each other and with texts. Each is compiled to an automaton once.

class SchemaPatterns {
 public:
  explicit SchemaPatterns(Grammar* grammar)
      : work_(grammar->work()), memory_(grammar->scratch(), kMostKeptBytes), known_(&memory_) {}

  /// Null, or the fault of a pattern. `wrong`: it is not a valid pattern.
  const char* error(const JsonText& pattern, bool* wrong);
  /// `failed`: its automaton is too large. Formats are checked only if their pattern is exact.
  bool accepts(const JsonText& pattern, bool is_format, const JsonText& text, bool* failed,
               RegexReading reading = RegexReading::kBoth);
  /// True if some text may satisfy both, or if deciding is too expensive.
  bool mayMeet(const StringFacts& a, const StringFacts& b);
  /// The same for two patterns, each as either engine may read it.
  bool mayMeetEither(const JsonText& a, const JsonText& b);
  bool noMemory() const { return memory_.noMemory(); }

 private:
  static constexpr size_t kMostKeptBytes = 16u << 20;
  static constexpr uint32_t kHashes = 256;
  static constexpr uint32_t kMostPairs = 1u << 14;

  /// kCheck: whether a pattern is readable. kBoth and kEither: the automaton of combined patterns and formats.
  enum class Of : uint8_t { kCheck, kBoth, kEither };
  struct Known {
    uint64_t hash;
    uint32_t same_hash;
    Of of;
    bool wrong;
    bool too_large;
    uint32_t n_patterns;
    uint32_t n_formats;
    const JsonText* texts;
    const char* error;
    Dfa dfa;
  };

  static uint64_t hashOf(const StringFacts& facts, Of of);
  static bool isSame(const Known& known, const StringFacts& facts);
  const Known* find(const StringFacts& facts, Of of, uint64_t hash);
  const Known* keep(const StringFacts& facts, Known known);
  bool copyDfa(Dfa* dfa);
  /// `number`: in known_, plus 1; 0: not cached.
  bool dfaOf(const StringFacts& facts, RegexReading reading, Dfa* dfa, uint32_t* number);
  bool mayMeet(const Dfa& a, uint32_t number_a, const Dfa& b, uint32_t number_b);

  Work* const work_;
  Scratch memory_;
  List<Known> known_;
  uint32_t* heads_ = nullptr;  ///< in known_, plus 1
  /// Cached results of mayMeet(), one slot per hash: numbers from dfaOf(), the smaller one first; lowest bit: the
  /// result.
  uint64_t* pairs_ = nullptr;
};

// Constants and object keys as expressions.

/// Builds expressions with empty parts removed: kNever propagates to expressions that need it.
class LiveExpressions {
 public:
  explicit LiveExpressions(Grammar* grammar) : g_(grammar) {}

  bool isNever(ExprId id) const { return g_->at(id).kind == ExprKind::kNever; }
  ExprId sequence(ExprId a, ExprId b) {
    return isNever(a) || isNever(b) ? g_->never() : g_->sequence(a, b);
  }
  ExprId choice(ExprId a, ExprId b) { return isNever(a) ? b : isNever(b) ? a : g_->choice(a, b); }
  ExprId optional(ExprId a) { return isNever(a) ? g_->empty() : g_->optional(a); }
  ExprId asRule(ExprId a) {
    if (isNever(a)) {
      return a;
    }
    const RuleId rule = g_->newRule();
    g_->define(rule, a);
    return g_->rule(rule);
  }
  /// Optional white space.
  ExprId blank() { return g_->optional(g_->text(" ")); }
  ExprId comma() { return g_->sequence(g_->text(","), blank()); }

 protected:
  Grammar* const g_;
};

/// A balanced choice, so that many options do not nest deeply. kNever without options.
ExprId choiceOf(const ExprId* options, uint32_t count, Grammar* grammar);

/// JSON of a value, in the grammar's memory.
JsonText jsonOf(const JsonValue& value, Scratch* scratch);

/// Matches any of these texts, with shared prefixes. Sorts them. `count` is not 0.
ExprId textsExpression(JsonText* texts, uint32_t count, Grammar* grammar);

/// For each expression from `from` on, whether it matches any text. They may only refer to each other. The result is in
/// the work's memory. Null: out of memory, or the work has ended.
const uint8_t* expressionsWithText(const Grammar* grammar, ExprId from);

/// One unescaped code point of a string.
ExprId rawCharacter(Grammar* grammar);
/// One code point, raw or escaped; numeric escapes exclude surrogates.
ExprId anyCharacter(Grammar* grammar);
/// One code point, raw or with a letter escape: needs fewer states.
ExprId countedCharacter(Grammar* grammar);

/// A member's key with its quotes: any key except `names`, which are sorted. It contains no escapes, so it cannot spell
/// a name differently.
ExprId otherKey(JsonText* names, uint32_t count, Grammar* grammar);

}  // namespace oriel_internal
