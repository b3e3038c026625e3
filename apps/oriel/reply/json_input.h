// Bounded reading of JSON from untrusted files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "output.h"

namespace cli {

/// Per file. A value takes at least 16 bytes.
constexpr size_t kMostJsonValues = 8 << 20;
/// Parses like Oriel (oriel_json_read). Throws Failure with one line that names `what` if the text is not JSON, is
/// nested deeper than 64 levels, repeats a key, or has more values than the limit.
Json parseJson(const std::string& text, const std::string& what,
               size_t most_values = kMostJsonValues);
/// "-" is stdin. At most 64 MiB.
Json readJson(const std::string& path);

/// Numbers of a JSON array `[1, 2]` or an object `{"ids": [1, 2]}`; `what` names the source in errors.
std::vector<int32_t> idsFromJson(const Json& json, const std::string& what);

}  // namespace cli
