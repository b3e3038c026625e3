// Tokens that mark a text with a gap: what stands before it, what behind it, and where the model writes.
#pragma once

#include <cstdint>

#include "gguf/gguf.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// -1: the model has none. All three or none.
struct FillTokens {
  int32_t prefix = -1;
  int32_t suffix = -1;
  int32_t middle = -1;
};

/// As the file says, else by their names.
FillTokens fillTokens(const GgufFile& file, const Tokenizer& tokenizer);

}  // namespace oriel_internal
