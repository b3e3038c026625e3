// "Did you mean" suggestions.
#pragma once

#include <string>
#include <vector>

namespace cli {

/// The word in `known` that `typed` most likely means: at most two edits away, or a word it is a prefix of. Empty: none.
std::string nearest(const std::string& typed, const std::vector<std::string>& known);

}  // namespace cli
