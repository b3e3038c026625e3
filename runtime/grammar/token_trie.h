// The vocabulary as a byte trie, with facts about tokens that hold for every grammar.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "base/log.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// Character classes of tokens. Masks are computed by class where all characters of a class are equivalent, as in most
/// strings.
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
  kOther,  ///< partial characters, more than kLongestPlain characters, or control tokens
};
constexpr uint32_t kTextKinds = 11;
constexpr uint32_t kindBit(TextKind kind) { return 1u << static_cast<uint32_t>(kind); }
/// Kinds that strings often treat specially. Tokens with such characters, about 5 %, have a separate trie.
constexpr uint32_t kOddKinds = kindBit(TextKind::kQuote) | kindBit(TextKind::kBackslash) |
                               kindBit(TextKind::kControl) | kindBit(TextKind::kOther);
/// The kind of a byte below 0x80.
TextKind kindOfAscii(uint8_t byte);

/// Longest token, in code points, with kinds; longer ones are rare.
constexpr uint32_t kLongestPlain = 32;

/// Built once per model; immutable and thread-safe.
class TokenTrie {
 public:
  /// 8 bytes. Nodes are in depth-first order, children sorted by byte: the next node is the first child, and the node
  /// `skip` further is the next sibling. Tokens with equal bytes are siblings.
  struct Node {
    static constexpr uint32_t kNoToken = (1u << 21) - 1;

    uint32_t byte_and_skip = 0;  ///< skip << 8 | byte; skip counts the node and everything below it
    uint32_t kinds_and_token = 0;  ///< kinds of its own token and all below << 21 | token

    uint8_t byte() const { return static_cast<uint8_t>(byte_and_skip); }
    uint32_t skip() const { return byte_and_skip >> 8; }
    uint32_t token() const { return kinds_and_token & kNoToken; }
    uint32_t kinds() const { return kinds_and_token >> 21; }
  };
  static_assert(kTextKinds == 11, "kinds and a token share 32 bits");
  static_assert(kMaxVocabulary < Node::kNoToken, "a token has 21 bits");

  /// Control tokens without text appear as their TokenMark. Tokens that end a reply are left out. When measuring, counts
  /// the bytes and sets *trie to null. Checks `stop` before it starts. Borrows 24 bytes per token from `allocator` in
  /// both cases.
  static Status build(const Tokenizer& tokenizer, const oriel_allocator& allocator, const Log& log,
                      Arena* arena, TokenTrie** trie, const StopCheck& stop = {});
  /// Copies a trie that build() left in an arena and a file has kept. Null if it is not of this vocabulary.
  static TokenTrie* copyOf(const TokenizerBlock& saved, uint32_t n_vocab, Arena* arena);
  /// The object as the first bytes of such a block, without addresses.
  TokenTrie withoutTables() const;

  uint32_t vocabSize() const { return n_vocab_; }
  uint32_t words() const { return n_words_; }
  struct Tree {
    const Node* nodes = nullptr;
    uint32_t count = 0;
  };
  const Tree& all() const { return all_; }
  /// Tokens with a character of kOddKinds.
  const Tree& odd() const { return odd_; }
  /// A bit for each token with a character of that kind; kOther includes control tokens.
  const uint32_t* having(uint32_t kind) const {
    return having_ + static_cast<size_t>(kind) * n_words_;
  }
  /// Code points per token; 0: kOther. Ordered so that 64 of them give 64 mask bits: bit b is at 8 * (b % 8) + b / 8.
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
  const uint8_t* lengths_ = nullptr;  ///< [n_words / 2, rounded up][64]
  const int32_t* stops_ = nullptr;
};

}  // namespace oriel_internal
