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

SpecialTokens::Match SpecialTokens::longestOfLengths(const char* text, size_t most,
                                                     bool only_unshared, MayStand stands,
                                                     const void* may) const {
  // hashes[n]: hash of the first n bytes.
  uint64_t hashes[kMaxTokenBytes + 1];
  KeyHash hash = Tokenizer::keyHash(true);
  for (size_t n = 1; n <= most; ++n) {
    hash.add(text[n - 1]);
    hashes[n] = hash.end();
  }
  for (size_t n = most; n > 0; --n) {
    if ((t_.special_lengths_[n / 64] >> (n % 64) & 1) == 0) {
      continue;
    }
    // Checking whether a token is allowed here is cheaper than looking for it.
    const uint32_t found = t_.tokens_.find(hashes[n], [&](uint32_t other) {
      const int32_t id = static_cast<int32_t>(other);
      return (!Tokenizer::isWhole(t_.type(id)) || stands(id, n, may)) && t_.isVerbatim(id, text, n);
    });
    if (found == IndexTable::kNone) {
      continue;
    }
    int32_t id = static_cast<int32_t>(found);
    if (!Tokenizer::isWhole(t_.type(id))) {
      id = only_unshared ? -1 : lastSpecial(text, n);
    }
    if (id >= 0 && stands(id, n, may)) {
      return {n, id};
    }
  }
  return {};
}

}  // namespace oriel_internal
