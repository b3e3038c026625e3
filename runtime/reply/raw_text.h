// Texts that end at a mark, as expressions.
#pragma once

#include "grammar/expression.h"

namespace oriel_internal {

/// Any text up to the first occurrence of `mark` (ASCII), including the mark.
ExprId textUpTo(Grammar* grammar, const char* mark);

}  // namespace oriel_internal
