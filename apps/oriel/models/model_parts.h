// Names of models in several files: "m-00001-of-00003.gguf".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cli {

/// The part number in a file's name, from 1 on; 0: it is not the name of a part.
uint32_t partNumber(const std::string& file);
/// The names of all parts, or the addresses that end with them. Only `file` if it is not a part.
std::vector<std::string> allParts(const std::string& file);
/// The name of the model's file if it were one.
std::string withoutPart(const std::string& file);

}  // namespace cli
