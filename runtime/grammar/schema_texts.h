// Constants and the keys of objects, as expressions.
#pragma once

#include "grammar/expression.h"
#include "grammar/list.h"
#include "json/json.h"

namespace oriel_internal {

/// Expressions without what has no text: kNever takes what needs it along.
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
  /// White space, where there may be some.
  ExprId blank() { return g_->optional(g_->text(" ")); }
  ExprId comma() { return g_->sequence(g_->text(","), blank()); }

 protected:
  Grammar* const g_;
};

/// One of these, balanced, so that many do not go deep. None: kNever.
ExprId choiceOf(const ExprId* options, uint32_t count, Grammar* grammar);

/// JSON of a value, in the grammar's memory.
JsonText jsonOf(const JsonValue& value, Scratch* scratch);

/// One of these texts. What they begin with alike is written once; they are sorted. `count` is not 0.
ExprId textsExpression(JsonText* texts, uint32_t count, Grammar* grammar);

/// For each expression from `from` on, which are made of those alone, whether it has a text; in the work's memory. Null:
/// there is none, or the work has ended.
const uint8_t* expressionsWithText(const Grammar* grammar, ExprId from);

/// One code point of a string that stands for itself.
ExprId rawCharacter(Grammar* grammar);
/// One, or an escape for one; of those by number only what is no surrogate.
ExprId anyCharacter(Grammar* grammar);
/// One, or an escape by letter: fewer states.
ExprId countedCharacter(Grammar* grammar);

/// The key of a member, with its quotes: any but `names` (which are sorted). Nothing in it is escaped, so no spelling
/// is one of theirs.
ExprId otherKey(JsonText* names, uint32_t count, Grammar* grammar);

}  // namespace oriel_internal
