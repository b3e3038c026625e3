// JSON that the program reads: files of anybody's, so everything about them is bounded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "output.h"

namespace cli {

/// Of a file. A value takes 16 bytes or more.
constexpr size_t kMostJsonValues = 8 << 20;
/// Reads as Oriel does (oriel_json_read). Throws Failure with one line that names `what` for text that is not JSON, is
/// nested deeper than 64 levels, names a key twice, or holds more than so many values.
Json parseJson(const std::string& text, const std::string& what,
               size_t most_values = kMostJsonValues);
/// "-" is stdin. At most 64 MiB.
Json readJson(const std::string& path);

/// Numbers of a JSON array `[1, 2]` or an object `{"ids": [1, 2]}`; `what` names the source in
/// errors.
std::vector<int32_t> idsFromJson(const Json& json, const std::string& what);

}  // namespace cli
