// Prints of `oriel options --json` what option_names.cmake reads, for builds whose own program does not run here.
#include <cstdio>

#include "options/settings.h"

using namespace oriel_internal;

// The table's texts have nothing that JSON escapes.
int main() {
  std::printf("{\"options\": [");
  const char* between = "";
  for (size_t i = 0; i < kOptionCount; ++i) {
    const OptionRow& row = kOptions[i];
    if (row.layer == OptionLayer::kTests) {
      continue;
    }
    std::printf("%s{\"name\": \"%s\", \"scope\": \"%s\", \"type\": \"%s\", \"default\": \"%s\"",
                between, row.name(), scopeName(row.scope), typeName(row.type), row.standard());
    between = ", ";
    for (const OptionWord* word = row.words; word != nullptr && word->word != nullptr; ++word) {
      std::printf("%s\"%s\"", word == row.words ? ", \"choices\": [" : ", ", word->word);
    }
    std::printf("%s, \"help\": \"%s\"}", row.words != nullptr ? "]" : "", row.help());
  }
  std::puts("]}");
  return 0;
}
