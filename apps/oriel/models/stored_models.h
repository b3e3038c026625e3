// The models in the folder that `oriel pull` fills.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cli {

/// True if a name ends in ".gguf", in any case.
bool endsInGguf(const std::string& text);

/// $ORIEL_MODELS, or `oriel/models` in the user's data folder. Empty: no such folder.
std::filesystem::path modelsFolder();

/// The bytes of a file and of the stored other parts of its model.
uint64_t bytesOfModel(const std::string& file);

struct StoredModel {
  std::string name;  ///< the name to type
  std::string path;
  uint64_t bytes = 0;
};
/// Complete files in that folder, sorted by name.
std::vector<StoredModel> storedModels();

}  // namespace cli
