// Tokens for fill-in-the-middle: before the gap, after it, and where the model writes.
#pragma once

#include <cstdint>

#include "gguf/gguf.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// -1: missing. Either all three or none.
struct FillTokens {
  int32_t prefix = -1;
  int32_t suffix = -1;
  int32_t middle = -1;
};

/// From the file's keys, otherwise by name.
FillTokens fillTokens(const GgufFile& file, const Tokenizer& tokenizer);

}  // namespace oriel_internal
