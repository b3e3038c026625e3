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

}  // namespace cli
