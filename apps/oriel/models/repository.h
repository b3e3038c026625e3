// Models by the name of their page: ORG/NAME, or ORG/NAME:QUANTISATION, as Hugging Face has them. HF_ENDPOINT names
// another server with the same paths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cli {

/// Whether a word has that form; a path of three parts, or one that begins with a dot, has not.
bool isRepository(const std::string& word);

/// Which of these quantisations is meant where none is named: q4_k_m, else q4_0, else q8_0, else the first. There is one
/// at least.
size_t preferredQuantisation(const std::vector<std::string>& quantisations);

/// A file of a repository, as its server lists it.
struct RepositoryFile {
  std::string name;  ///< ORG/NAME:QUANTISATION
  std::string file;
  std::string url;
  uint64_t bytes = 0;  ///< 0: not known
};
/// Asks the server which files there are. Throws Failure.
RepositoryFile repositoryFile(const std::string& word);

/// The token of HF_TOKEN, where `url` is on the server that it is for; else empty.
std::string tokenFor(const std::string& url);

}  // namespace cli
