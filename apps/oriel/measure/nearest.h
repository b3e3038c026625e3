// "Did you mean".
#pragma once

#include <string>
#include <vector>

namespace cli {

/// The word of `known` that `typed` was most likely meant to be: a letter or two apart, or what it is the beginning
/// of. Empty: none is near.
std::string nearest(const std::string& typed, const std::vector<std::string>& known);

}  // namespace cli
