// The tokens that a text begins with, of which no more is read than they need.
#pragma once

#include <cstdint>
#include <vector>

#include "model_handle.h"
#include "text_input.h"

namespace cli {

/// At most `most` tokens, as the whole text begins with; 0: all of it. Throws Failure.
std::vector<int32_t> firstTokens(TextInput* input, const Model& model, size_t most);

}  // namespace cli
