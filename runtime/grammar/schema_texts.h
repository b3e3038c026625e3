// Constants and object keys as expressions.
#pragma once

#include "grammar/expression.h"
#include "grammar/list.h"
#include "json/json.h"

namespace oriel_internal {

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
