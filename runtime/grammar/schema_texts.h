// Constants and the keys of objects, as expressions.
#pragma once

#include "grammar/expression.h"
#include "grammar/list.h"
#include "json/json.h"

namespace oriel {

/// One of these, balanced, so that many do not go deep. None: kNever.
ExprId choiceOf(const ExprId* options, uint32_t count, Grammar* grammar);

/// JSON of a value, in the grammar's memory.
JsonText jsonOf(const JsonValue& value, Scratch* scratch);

/// One of these texts. What they begin with alike is written once; they are sorted. `count` is not 0.
ExprId textsExpression(JsonText* texts, uint32_t count, Grammar* grammar);

/// One code point of a string that stands for itself.
ExprId rawCharacter(Grammar* grammar);
/// One, or an escape for one; of those by number only what is no surrogate.
ExprId anyCharacter(Grammar* grammar);
/// One, or an escape by letter: fewer states.
ExprId countedCharacter(Grammar* grammar);

/// The key of a member, with its quotes: any but `names` (which are sorted). Nothing in it is escaped, so no spelling
/// is one of theirs.
ExprId otherKey(JsonText* names, uint32_t count, Grammar* grammar);

}  // namespace oriel
