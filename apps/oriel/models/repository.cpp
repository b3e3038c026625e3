#include "models/repository.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace cli {
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

}  // namespace cli
