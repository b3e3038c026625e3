// Names of models in several files: "m-00001-of-00003.gguf".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cli {

/// The part number in a file's name, from 1 on; 0: it is not the name of a part.
uint32_t partNumber(const std::string& file);
/// The names of all parts, or the addresses that end with them. Only `file` if it is not a part.
std::vector<std::string> allParts(const std::string& file);
/// The name of the model's file if it were one.
std::string withoutPart(const std::string& file);

// The models in the folder that `oriel pull` fills.

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
