// GBNF, the grammar notation of llama.cpp, read into expressions. docs/structured-output.md has its rules.
#pragma once

#include "base/log.h"
#include "grammar/expression.h"

namespace oriel_internal {

/// Errors name the line: ORIEL_ERROR_ARGUMENT. `root` becomes the grammar's root.
Status readGbnf(const char* text, size_t bytes, const Log& log, Grammar* grammar);

}  // namespace oriel_internal
