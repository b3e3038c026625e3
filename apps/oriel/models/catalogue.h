// Names of models: files in several parts, stored models, repositories, and published models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "output.h"

namespace cli {

// Names of models in several files: "m-00001-of-00003.gguf".

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

// Resolves model names.

/// The local file for a name: a catalogue name or a file name, with or without ".gguf", in any case. Empty: not found.
std::optional<std::string> storedModel(const std::string& name);

/// True if a word names a local or catalogued model.
bool isModelName(const std::string& word);

/// The file for the MODEL argument: an existing path, or a local model. Throws Failure for an unknown name. A missing
/// path is returned unchanged; opening it reports the error.
std::string modelFile(const std::string& given);

// File addresses for display.

/// UTF-8 on one line, without control characters (C0 and C1).
bool isPlainText(const std::string& text);
/// True if it contains a user name or a password.
bool hasLogin(const std::string& url);
/// `url` for display: without a login.
std::string shownUrl(const std::string& url);
/// The server with its port, without a login.
std::string hostOf(const std::string& url);
/// The last part of the path. Empty: not a file name.
std::string fileOfUrl(const std::string& url);

// Models by repository: ORG/NAME, or ORG/NAME:QUANTISATION, as on Hugging Face. HF_ENDPOINT names another server with
// the same paths.

/// True if a word has that form. False for a path of three parts and for a path that begins with a dot.
bool isRepository(const std::string& word);

/// The default among these quantisations: q4_k_m, else q4_0, else q8_0, else the first. The list must not be empty.
size_t preferredQuantisation(const std::vector<std::string>& quantisations);

/// A file of a repository, as listed by its server.
struct RepositoryFile {
  std::string name;  ///< ORG/NAME:QUANTISATION
  std::string file;
  std::string url;
  uint64_t bytes = 0;  ///< 0: not known
};
/// Asks the server for the list of files. Throws Failure.
RepositoryFile repositoryFile(const std::string& word);

/// The token in HF_TOKEN if `url` is on its server; otherwise empty.
std::string tokenFor(const std::string& url);

// Published models that run in Oriel: short names and addresses. Static data.

struct PublishedModel {
  const char* id;  ///< the short name: "smollm2-135m"
  const char* name;
  const char* shape;     ///< as oriel_shape_list names it
  const char* page;      ///< where the file is
  const char* file;      ///< its name there
  uint64_t file_bytes;   ///< 0: not confirmed
  const char* license;   ///< as SPDX writes it
  bool derived = false;  ///< file_bytes was added up from the shapes of the tensors
};

std::vector<const PublishedModel*> catalogue();

/// "q4_k_m" for "SmolLM2-135M-Instruct-Q4_K_M.gguf".
std::string quantisationOf(const std::string& file);

/// A file of a model in the catalogue.
struct CataloguedFile {
  const PublishedModel* model = nullptr;
  std::string file;
  uint64_t bytes = 0;  ///< 0: not known

  bool listed() const { return file == model->file; }
  std::string url() const;
};

/// Resolves a name in any case: "smollm2-135m" gives the listed file, "smollm2-135m:q8_0" the publisher's name for that
/// quantisation, which may not exist.
std::optional<CataloguedFile> cataloguedFile(const std::string& name);

// Memory of the published models, always computed.

/// A published model with values computed from its shape.
struct ListedModel {
  const PublishedModel* published;
  Json shape;
  uint64_t on_file_bytes = 0;  ///< the part of file_bytes that stays in the file
  /// For 4096 tokens of window and sinks; 0: file_bytes is unknown.
  uint64_t memory_bytes_4096 = 0;
  uint64_t memory_bytes_32768 = 0;
};

/// Sorted by memory; unknown ones last.
std::vector<ListedModel> publishedModels();

}  // namespace cli
