// Formats of the cache as people write them.
#pragma once

#include <string>

#include <oriel/oriel.h>

namespace cli {

struct CommonOptions;

/// As --kv takes it; false: there is no such format.
bool parseKvFormat(const std::string& text, CommonOptions* options);
/// "K8V4", "f16": as --kv spells it, in the case people write.
std::string formatsName(oriel_kv_format k, oriel_kv_format v);

}  // namespace cli
