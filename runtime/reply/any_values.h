// Values of no schema, as expressions: the arguments of a tool whose schema cannot be held.
#pragma once

#include "grammar/expression.h"

namespace oriel_internal {

/// 1 to 64 letters, digits and _.
ExprId anyKey(Grammar* grammar);
/// `one` any number of times, with `between` between two.
ExprId anyList(Grammar* grammar, ExprId one, const char* between);
/// {key:value,...} as Gemma writes it.
ExprId anyGemmaObject(Grammar* grammar);

}  // namespace oriel_internal
