// Finds the control, user-defined or unknown token at a place in a text. Bounded time per place for any vocabulary: one
// binary search, then at most one lookup per token length.
#pragma once

#include "text/tokenizer.h"

namespace oriel_internal {

class SpecialTokens {
 public:
  struct Match {
    size_t bytes = 0;  ///< 0: none
    int32_t id = -1;
  };

  explicit SpecialTokens(const Tokenizer& tokenizer) : t_(tokenizer) {}

  size_t longestBytes() const { return t_.longest_special_; }

  /// The longest token at `text`, of at most `available` bytes, for which `may(id, bytes)` holds. Among tokens with
  /// equal bytes only the last counts.
  template <typename May>
  Match longest(const char* text, size_t available, const May& may) const {
    return search(text, available, false, may);
  }
  /// The same where tokens overlap. A token is ignored if a later ordinary token has the same bytes.
  template <typename May>
  Match longestUnshared(const char* text, size_t available, const May& may) const {
    return search(text, available, true, may);
  }
  /// The longestUnshared() id for exactly these bytes; -1: none.
  int32_t exactUnshared(const char* text, size_t bytes) const {
    const int32_t id = t_.lookUp(true, text, bytes);
    return id >= 0 && Tokenizer::isWhole(t_.type(id)) ? id : -1;
  }

 private:
  template <typename May>
  Match search(const char* text, size_t available, bool only_unshared, const May& may) const {
    const uint8_t head = static_cast<uint8_t>(text[0]);
    const uint32_t first = t_.special_first_[head];
    if (first == t_.special_first_[head + 1]) {
      return {};
    }
    // Every match is a prefix of the last token that does not sort after the text.
    const size_t most = available < longestBytes() ? available : longestBytes();
    const uint32_t behind = firstBehind(first, t_.special_first_[head + 1], text, most);
    if (behind == first) {
      return {};
    }
    const int32_t nearest = static_cast<int32_t>(t_.specials_[behind - 1]);
    const Tokenizer::Piece piece = t_.bytesOf(nearest);
    size_t shared = 0;
    for (const size_t end = piece.bytes < most ? piece.bytes : most;
         shared < end && piece.data[shared] == text[shared];) {
      ++shared;
    }
    if (shared == piece.bytes && !only_unshared && may(nearest, shared)) {
      return {shared, nearest};
    }
    const auto stands = [](int32_t id, size_t bytes, const void* of) {
      return (*static_cast<const May*>(of))(id, bytes);
    };
    return longestOfLengths(text, shared, only_unshared, stands, &may);
  }

  /// `may` decides whether a token with these bytes is allowed here. Not a template, since it is long and rarely called.
  using MayStand = bool (*)(int32_t id, size_t bytes, const void* may);
  Match longestOfLengths(const char* text, size_t most, bool only_unshared, MayStand stands,
                         const void* may) const;

  /// The last special token with exactly these bytes; -1: none.
  int32_t lastSpecial(const char* text, size_t bytes) const;
  /// The first of the sorted tokens in [first, last) that sorts after `text` and is not a prefix of it.
  uint32_t firstBehind(uint32_t first, uint32_t last, const char* text, size_t bytes) const;

  const Tokenizer& t_;
};

}  // namespace oriel_internal
