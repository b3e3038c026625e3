// Reads GBNF, llama.cpp's grammar notation. Its rules: docs/structured-output.md.
#pragma once

#include "base/log.h"
#include "grammar/expression.h"

namespace oriel_internal {

/// Errors name the line and are ORIEL_ERROR_ARGUMENT. `root` becomes the grammar's root.
Status readGbnf(const char* text, size_t bytes, const Log& log, Grammar* grammar);

}  // namespace oriel_internal
