// The models in the folder that `oriel pull` fills.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cli {

/// True if a name ends in ".gguf", in any case.
bool endsInGguf(const std::string& text);

/// $ORIEL_MODELS, else `oriel/models` among the user's data. Empty: there is no such place.
std::filesystem::path modelsFolder();

/// Of a file with all other parts of its model that are there.
uint64_t bytesOfModel(const std::string& file);

struct StoredModel {
  std::string name;  ///< what people type
  std::string path;
  uint64_t bytes = 0;
};
/// Whole files in that folder, by name.
std::vector<StoredModel> storedModels();

}  // namespace cli
