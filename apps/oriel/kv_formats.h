// Names of cache formats.
#pragma once

#include <string>

#include "output.h"

namespace cli {

/// Display name of key and value formats: "K8V4" for "int8" and "int4", "f16" for "f16" and "f16".
std::string formatsName(const std::string& k, const std::string& v);
/// For a plan, a choice or a snapshot.
std::string formatsName(const Json& object);

/// The selectable pairs in --kv's spelling, from large to small.
constexpr const char* kFormatPairs[] = {"f16", "k8v8", "k8v4", "k4v4"};

}  // namespace cli
