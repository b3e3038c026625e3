// Texts that end where a mark stands, as expressions.
#pragma once

#include "grammar/expression.h"

namespace oriel_internal {

/// Any text up to the first place where `mark` (ASCII) stands, with the mark.
ExprId textUpTo(Grammar* grammar, const char* mark);

}  // namespace oriel_internal
