#include "models/catalogue.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>

#include "models/download.h"
#include "options.h"
#include "output.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

constexpr size_t kNone = std::string::npos;

/// After "://", up to the path.
size_t serverBegin(const std::string& url) {
  const size_t begin = url.find("://");
  return begin == kNone ? url.size() : begin + 3;
}
size_t serverEnd(const std::string& url) {
  return std::min(url.find_first_of("/?#", serverBegin(url)), url.size());
}
/// Position of the login's '@'; kNone: no login.
size_t loginEnd(const std::string& url) {
  const size_t at = url.substr(0, serverEnd(url)).rfind('@');
  return at == kNone || at < serverBegin(url) ? kNone : at;
}

/// Decodes "%20" and the like.
std::string decoded(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string digits = text.substr(i + 1, 2);
    const bool coded = text[i] == '%' && digits.size() == 2 &&
                       digits.find_first_not_of("0123456789abcdefABCDEF") == kNone;
    out += coded ? static_cast<char>(std::stoi(digits, nullptr, 16)) : text[i];
    i += coded ? 2 : 0;
  }
  return out;
}

}  // namespace

bool isPlainText(const std::string& text) { return oneLine(text) == text; }

bool hasLogin(const std::string& url) { return loginEnd(url) != kNone; }

std::string shownUrl(const std::string& url) {
  const size_t at = loginEnd(url);
  return at == kNone ? url : url.substr(0, serverBegin(url)) + url.substr(at + 1);
}

std::string hostOf(const std::string& url) {
  const std::string shown = shownUrl(url);
  const size_t begin = serverBegin(shown);
  return shown.substr(begin, serverEnd(shown) - begin);
}

std::string fileOfUrl(const std::string& url) {
  const size_t path = url.find('/', serverBegin(url));
  if (path == kNone) {
    return "";
  }
  const std::string whole = url.substr(path, url.find_first_of("?#", path) - path);
  const std::string file = decoded(whole.substr(whole.rfind('/') + 1));
  const bool safe = !file.empty() && isPlainText(file) && file.find_first_of("/\\:") == kNone &&
                    file.front() != '.' && file.front() != '-';
  return safe ? file : "";
}

namespace {

bool isPartOfName(const std::string& text) {
  return !text.empty() && text[0] != '.' && text[0] != '-' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                  std::strchr("._-", c) != nullptr;
         });
}

}  // namespace

bool isRepository(const std::string& word) {
  const size_t slash = word.find('/');
  const size_t colon = std::min(word.find(':'), word.size());
  return slash < colon && isPartOfName(word.substr(0, slash)) &&
         isPartOfName(word.substr(slash + 1, colon - slash - 1)) &&
         (colon == word.size() || isPartOfName(word.substr(colon + 1)));
}

size_t preferredQuantisation(const std::vector<std::string>& quantisations) {
  for (const char* const wanted : {"q4_k_m", "q4_0", "q8_0"}) {
    const auto found = std::find(quantisations.begin(), quantisations.end(), wanted);
    if (found != quantisations.end()) {
      return static_cast<size_t>(found - quantisations.begin());
    }
  }
  return 0;
}

namespace {

constexpr char kEndpoint[] = "https://huggingface.co";
/// Lists of the largest repositories have about 100 KiB.
constexpr size_t kMostListBytes = 4 << 20;

std::string endpoint() {
  std::string url = variable("HF_ENDPOINT");
  url.erase(url.find_last_not_of('/') + 1);
  return url.empty() ? kEndpoint : url;
}

[[noreturn]] void failToAnswer(const std::string& repository, int status) {
  const std::string host = hostOf(endpoint());
  const bool login = status == 401 || status == 403;
  throw Failure{kExitFailed,
                login && variable("HF_TOKEN").empty()
                    ? host + " wants a login for " + repository + ", or has no such model (" +
                          std::to_string(status) + "): check the name, or set HF_TOKEN to a token"
                : login ? host + " does not let this HF_TOKEN read " + repository + " (" +
                              std::to_string(status) + "): accept its licence on its page"
                        : host + " answers " + std::to_string(status) + " for " + repository +
                              ": check the name"};
}

/// Downloads the list of files, as JSON.
std::string listOfFiles(const std::string& repository) {
  const std::string url = endpoint() + "/api/models/" + repository + "/tree/main?recursive=true";
  Curl curl(url, 0, "install it (Debian: apt install curl)");
  HttpHead head;
  std::optional<HttpBody> body;
  std::string text;
  std::vector<char> buffer(65536);
  for (long count = 0; (count = curl.read(buffer.data(), buffer.size())) != 0;) {
    if (interrupts() != 0) {
      throw Failure{kExitCancelled, ""};
    }
    const size_t bytes = count > 0 ? static_cast<size_t>(count) : 0;
    const size_t taken = head.take({buffer.data(), bytes});
    if (head.broken() || (body && body->broken()) || text.size() > kMostListBytes) {
      throw Failure{kExitFailed, hostOf(url) + " sends no list of files: try an address instead"};
    }
    if (head.complete()) {
      if (!body) {
        body.emplace(head.chunked());
      }
      text.append(buffer.data() + taken, body->take(buffer.data() + taken, bytes - taken));
    }
  }
  const CurlEnd end = curl.finish();
  if (!head.complete()) {
    throw Failure{kExitFailed, hostOf(url) + " cannot be reached" +
                                   (end.error.empty() ? "" : " (" + end.error + ")") +
                                   ": check the network"};
  }
  if (head.status() != 200) {
    failToAnswer(repository, head.status());
  }
  return text;
}

bool endsWith(const std::string& text, const std::string& ending) {
  return text.size() > ending.size() &&
         text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

}  // namespace

RepositoryFile repositoryFile(const std::string& word) {
  const size_t colon = std::min(word.find(':'), word.size());
  const std::string repository = word.substr(0, colon);
  const std::string wanted = lowerCase(word.substr(std::min(colon + 1, word.size())));
  const Json list = tryJson(listOfFiles(repository));
  std::vector<RepositoryFile> files;
  std::vector<std::string> quantisations;
  for (const Json& entry : list.is_array() ? list : Json::array()) {
    const std::string path = entry.is_object() ? entry.value("path", "") : "";
    const std::string url = endpoint() + "/" + repository + "/resolve/main/" + path;
    const std::string file = fileOfUrl(url);
    const bool other = file.find("mmproj") != std::string::npos || partNumber(file) > 1;
    if (!endsWith(lowerCase(file), ".gguf") || other || path.find("..") != std::string::npos) {
      continue;
    }
    const std::string quantisation = quantisationOf(file);
    files.push_back({repository + ":" + quantisation, file, url, entry.value("size", uint64_t{0})});
    quantisations.push_back(quantisation);
  }
  if (files.empty()) {
    throw Failure{kExitFailed, repository +
                                   " has no GGUF file: name a repository "
                                   "that ends in -GGUF, or an address"};
  }
  if (wanted.empty()) {
    return files[preferredQuantisation(quantisations)];
  }
  const auto found = std::find(quantisations.begin(), quantisations.end(), wanted);
  if (found == quantisations.end()) {
    std::string names;
    for (const std::string& each : quantisations) {
      names += (names.empty() ? "" : ", ") + each;
    }
    throw Failure{kExitFailed, repository + " has no " + wanted + ": it has " + names};
  }
  return files[static_cast<size_t>(found - quantisations.begin())];
}

std::string tokenFor(const std::string& url) {
  const std::string server = endpoint() + "/";
  const std::string token = url.compare(0, server.size(), server) == 0 ? variable("HF_TOKEN") : "";
  const bool plain = std::all_of(token.begin(), token.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("._-", c) != nullptr;
  });
  return plain ? token : "";
}

}  // namespace cli
