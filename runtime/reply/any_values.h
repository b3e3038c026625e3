// Expressions for values without a schema: arguments of tools whose schema cannot be enforced.
#pragma once

#include "grammar/expression.h"

namespace oriel_internal {

/// 1 to 64 letters, digits and _.
ExprId anyKey(Grammar* grammar);
/// Any number of `one`, separated by `between`.
ExprId anyList(Grammar* grammar, ExprId one, const char* between);
/// {key:value,...} in Gemma's notation.
ExprId anyGemmaObject(Grammar* grammar);

}  // namespace oriel_internal
