// The vocabulary as a tree of bytes, and what is known of its tokens whatever the grammar.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "base/log.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// What characters a token consists of. A mask is made by kinds where all characters of a kind are as good as each
/// other, which they are inside of most strings.
enum class TextKind : uint8_t {
  kLower,
  kUpper,
  kDigit,
  kSpace,
  kJoiner,  ///< _ - .
  kPunctuation,
  kQuote,
  kBackslash,
  kControl,  ///< below 0x20, and 0x7F
  kBeyondAscii,
  kOther,  ///< not whole characters, or more than kLongestPlain of them; tokens that are no text
};
constexpr uint32_t kTextKinds = 11;
constexpr uint32_t kindBit(TextKind kind) { return 1u << static_cast<uint32_t>(kind); }
/// Kinds that strings have reason to treat otherwise. Tokens with one of them are a tree of their own: one in twenty.
constexpr uint32_t kOddKinds = kindBit(TextKind::kQuote) | kindBit(TextKind::kBackslash) |
                               kindBit(TextKind::kControl) | kindBit(TextKind::kOther);
/// Of a byte below 0x80.
TextKind kindOfAscii(uint8_t byte);

/// Longest token, in code points, that is looked at by its kinds; longer ones are few.
constexpr uint32_t kLongestPlain = 32;

/// Built once a model; immutable, may be used from several threads.
class TokenTrie {
 public:
  /// 8 bytes. Nodes lie in depth-first order, children by their byte: what follows a node is its first child, and
  /// `skip` nodes further its next sibling. Tokens of equal bytes are siblings.
  struct Node {
    static constexpr uint32_t kNoToken = (1u << 21) - 1;

    uint32_t byte_and_skip = 0;    ///< skip << 8 | byte; skip counts the node and all below
    uint32_t kinds_and_token = 0;  ///< kinds of all tokens below and of its own << 21 | token

    uint8_t byte() const { return static_cast<uint8_t>(byte_and_skip); }
    uint32_t skip() const { return byte_and_skip >> 8; }
    uint32_t token() const { return kinds_and_token & kNoToken; }
    uint32_t kinds() const { return kinds_and_token >> 21; }
  };
  static_assert(kTextKinds == 11, "kinds and a token share 32 bits");
  static_assert(kMaxVocabulary < Node::kNoToken, "a token has 21 bits");

  /// Control tokens that give no text stand in it as their TokenMark. Tokens that end the reply are not part of it.
  /// When measuring it counts the bytes and leaves *trie null. `stop` is asked before the work is begun. Borrows 24 bytes a token from `allocator` either way.
  static Status build(const Tokenizer& tokenizer, const oriel_allocator& allocator, const Log& log,
                      Arena* arena, TokenTrie** trie, const StopCheck& stop = {});

  uint32_t vocabSize() const { return n_vocab_; }
  uint32_t words() const { return n_words_; }
  struct Tree {
    const Node* nodes = nullptr;
    uint32_t count = 0;
  };
  const Tree& all() const { return all_; }
  /// Of the tokens that have a character of kOddKinds.
  const Tree& odd() const { return odd_; }
  /// A bit for each token with a character of that kind; of kOther those that are no text, too.
  const uint32_t* having(uint32_t kind) const {
    return having_ + static_cast<size_t>(kind) * n_words_;
  }
  /// Code points of each token; 0: kOther. In the order in which 64 of them make 64 bits of a mask: that of bit b is at
  /// 8 * (b % 8) + b / 8.
  const uint8_t* lengths() const { return lengths_; }
  const int32_t* stops() const { return stops_; }
  uint32_t stopCount() const { return n_stops_; }

 private:
  friend class TrieBuilder;

  TokenTrie() = default;

  uint32_t n_vocab_ = 0;
  uint32_t n_words_ = 0;
  uint32_t n_stops_ = 0;
  Tree all_;
  Tree odd_;
  const uint32_t* having_ = nullptr;  ///< [kTextKinds][n_words]
  const uint8_t* lengths_ = nullptr;  ///< [n_words / 2 rounded up][64]
  const int32_t* stops_ = nullptr;
};

}  // namespace oriel_internal
