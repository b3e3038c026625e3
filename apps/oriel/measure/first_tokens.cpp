#include "measure/first_tokens.h"

#include <algorithm>

namespace cli {

// The last words before a cut may be tokenised differently. The result is final when twice as much text gives the same ids.
std::vector<int32_t> firstTokens(TextInput* input, const Model& model, size_t most) {
  if (most == 0) {
    input->readAll();
    return model.tokenize(input->text(), 0);
  }
  std::vector<int32_t> before;
  for (uint64_t bytes = 4096 + 8 * static_cast<uint64_t>(std::min<size_t>(most, kMostInputBytes));;
       bytes *= 2) {
    if (bytes >= kMostInputBytes) {
      input->readAll();
    } else {
      input->readTo(bytes);
    }
    std::vector<int32_t> ids = model.tokenize(input->wholeCharacters(), 0);
    const bool enough = ids.size() >= most;
    ids.resize(std::min(ids.size(), most));
    if (input->ended() || (enough && ids == before)) {
      return ids;
    }
    before = std::move(ids);
  }
}

}  // namespace cli
