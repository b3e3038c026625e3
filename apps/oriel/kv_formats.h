// Formats of the cache as people write them.
#pragma once

#include <string>

#include "output.h"

namespace cli {

/// "K8V4", "f16": as --kv spells it, in the case people write, of "int8" and "int4", "f16" and "f16".
std::string formatsName(const std::string& k, const std::string& v);
/// Of a plan, a choice or a snapshot.
std::string formatsName(const Json& object);

/// The pairs that may be chosen, as --kv takes them, from large to small.
constexpr const char* kFormatPairs[] = {"f16", "k8v8", "k8v4", "k4v4"};

}  // namespace cli
