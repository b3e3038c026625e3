// Tokenises the beginning of a text without reading the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "model_handle.h"
#include "text_input.h"

namespace cli {

/// The first `most` tokens of the whole text; 0: all tokens. Throws Failure.
std::vector<int32_t> firstTokens(TextInput* input, const Model& model, size_t most);

}  // namespace cli
