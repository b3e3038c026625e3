// Models by name: files in the folder that `oriel pull` fills.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cli {

/// $ORIEL_MODELS, else `oriel/models` among the user's data. Empty: there is no such place.
std::filesystem::path modelsFolder();

struct StoredModel {
  std::string name;  ///< what people type
  std::string path;
  uint64_t bytes = 0;
};
/// Whole files in that folder, by name.
std::vector<StoredModel> storedModels();

/// The file in that folder that a name means: one of the catalogue, or a file's own, with or without ".gguf", in any
/// case. Nothing: it is not there.
std::optional<std::string> storedModel(const std::string& name);

/// Whether a word names a model: one that is there, or one of the catalogue.
bool isModelName(const std::string& word);

/// The file that MODEL means: a path as it is, else a model that is there. Throws Failure for a name that means none; a
/// path of nothing is for whoever opens it to complain about.
std::string modelFile(const std::string& given);

}  // namespace cli
