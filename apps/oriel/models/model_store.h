// Resolves model names.
#pragma once

#include <optional>
#include <string>

#include "models/stored_models.h"

namespace cli {

/// The local file for a name: a catalogue name or a file name, with or without ".gguf", in any case. Empty: not found.
std::optional<std::string> storedModel(const std::string& name);

/// True if a word names a local or catalogued model.
bool isModelName(const std::string& word);

/// The file for the MODEL argument: an existing path, or a local model. Throws Failure for an unknown name. A missing
/// path is returned unchanged; opening it reports the error.
std::string modelFile(const std::string& given);

}  // namespace cli
