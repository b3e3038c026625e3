#include "measure/nearest.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace cli {
namespace {

/// Insertions, deletions, substitutions and transpositions (optimal string alignment).
size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> least(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        least[i][j] = i + j;
        continue;
      }
      least[i][j] = std::min({least[i - 1][j] + 1, least[i][j - 1] + 1,
                              least[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        least[i][j] = std::min(least[i][j], least[i - 2][j - 2] + 1);
      }
    }
  }
  return least[a.size()][b.size()];
}

}  // namespace

std::string nearest(const std::string& typed, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;  // longer than every option and command
  if (typed.size() > kLongest) {
    return {};
  }
  std::string lower = typed;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const size_t letters = lower.size() - std::min(lower.find_first_not_of("-/"), lower.size());
  std::string best;
  size_t least = std::min<size_t>(letters / 3, 2) + 1;
  for (const std::string& word : known) {
    const bool begins = letters >= 3 && word.compare(0, lower.size(), lower) == 0;
    const size_t apart = begins ? 1 : distance(lower, word);
    if (apart < least) {
      least = apart;
      best = word;
    }
  }
  return best;
}

}  // namespace cli
