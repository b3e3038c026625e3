// Published models that run in Oriel: short names and addresses. Static data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cli {

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

}  // namespace cli
