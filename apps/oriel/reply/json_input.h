// JSON that the program reads: files of anybody's, so everything about them is bounded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "output.h"

namespace cli {

/// What is nested is walked by recursion, here and in the JSON library. As deep as Oriel reads JSON: schemas of tools'
/// parameters take two levels for each object in an object.
constexpr size_t kMostJsonDepth = 64;
/// Of a file. A value takes 16 bytes or more.
constexpr size_t kMostJsonValues = 8 << 20;
/// Throws Failure with one line that names `what` for text that is not JSON, is nested deeper, holds more
/// than so many values or an object with more than 1024 keys, or names a key twice.
Json parseJson(const std::string& text, const std::string& what,
               size_t most_values = kMostJsonValues);
/// "-" is stdin. At most 64 MiB.
Json readJson(const std::string& path);

/// Numbers of a JSON array `[1, 2]` or an object `{"ids": [1, 2]}`; `what` names the source in
/// errors.
std::vector<int32_t> idsFromJson(const Json& json, const std::string& what);

}  // namespace cli
