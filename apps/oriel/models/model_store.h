// Models by name.
#pragma once

#include <optional>
#include <string>

#include "models/stored_models.h"

namespace cli {

/// The file in that folder that a name means: one of the catalogue, or a file's own, with or without ".gguf", in any
/// case. Nothing: it is not there.
std::optional<std::string> storedModel(const std::string& name);

/// Whether a word names a model: one that is there, or one of the catalogue.
bool isModelName(const std::string& word);

/// The file that MODEL means: a path as it is, else a model that is there. Throws Failure for a name that means none; a
/// path of nothing is for whoever opens it to complain about.
std::string modelFile(const std::string& given);

}  // namespace cli
