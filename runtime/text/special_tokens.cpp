#include "text/special_tokens.h"

#include <cstring>

namespace oriel_internal {

uint32_t SpecialTokens::firstBehind(uint32_t first, uint32_t last, const char* text,
                                    size_t bytes) const {
  while (first < last) {
    const uint32_t middle = first + (last - first) / 2;
    const Tokenizer::Piece piece = t_.bytesOf(static_cast<int32_t>(t_.specials_[middle]));
    const int order = std::memcmp(piece.data, text, piece.bytes < bytes ? piece.bytes : bytes);
    if (order < 0 || (order == 0 && piece.bytes <= bytes)) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

int32_t SpecialTokens::lastSpecial(const char* text, size_t bytes) const {
  const uint8_t head = static_cast<uint8_t>(text[0]);
  const uint32_t first = t_.special_first_[head];
  const uint32_t behind = firstBehind(first, t_.special_first_[head + 1], text, bytes);
  if (behind == first) {
    return -1;
  }
  const int32_t last = static_cast<int32_t>(t_.specials_[behind - 1]);
  return t_.isVerbatim(last, text, bytes) ? last : -1;
}

}  // namespace oriel_internal
