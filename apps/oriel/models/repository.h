// File addresses for display.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cli {

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

}  // namespace cli
