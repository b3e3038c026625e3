// Published models that run here: their short names, and where their files are. Static data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cli {

struct PublishedModel {
  const char* id;  ///< what people type: "smollm2-135m"
  const char* name;
  const char* shape;     ///< as oriel_shape_list names it
  const char* page;      ///< where the file is
  const char* file;      ///< its name there
  uint64_t file_bytes;   ///< 0: not confirmed
  const char* license;   ///< as SPDX writes it
  bool derived = false;  ///< file_bytes was added up from the shapes of the tensors
};

std::vector<const PublishedModel*> catalogue();

/// "q4_k_m" of "SmolLM2-135M-Instruct-Q4_K_M.gguf".
std::string quantisationOf(const std::string& file);

/// A file of a model in the catalogue.
struct CataloguedFile {
  const PublishedModel* model = nullptr;
  std::string file;
  uint64_t bytes = 0;  ///< 0: not known

  bool listed() const { return file == model->file; }
  std::string url() const;
};

/// What a name stands for: "smollm2-135m" the file that is listed, "smollm2-135m:q8_0" the one that its publisher would
/// call so; whether there is one only the page knows. In any case.
std::optional<CataloguedFile> cataloguedFile(const std::string& name);

}  // namespace cli
