// Compares a schema's patterns and formats with each other and with texts. Each is compiled to an automaton once.
#pragma once

#include "grammar/expression.h"
#include "grammar/regex.h"
#include "grammar/schema_strings.h"
#include "json/json.h"

namespace oriel_internal {

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
