#include "grammar/token_trie.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/scratch.h"
#include "text/utf8.h"

namespace oriel {

TextKind kindOfAscii(uint8_t byte) {
  if (byte < 0x20 || byte == 0x7F) {
    return TextKind::kControl;
  }
  if (byte >= 'a' && byte <= 'z') {
    return TextKind::kLower;
  }
  if (byte >= 'A' && byte <= 'Z') {
    return TextKind::kUpper;
  }
  if (byte >= '0' && byte <= '9') {
    return TextKind::kDigit;
  }
  switch (byte) {
    case ' ':
      return TextKind::kSpace;
    case '_':
    case '-':
    case '.':
      return TextKind::kJoiner;
    case '"':
      return TextKind::kQuote;
    case '\\':
      return TextKind::kBackslash;
    default:
      return TextKind::kPunctuation;
  }
}

namespace {

struct Sorted {
  uint64_t prefix = 0;  ///< the first eight bytes, zeros behind them
  uint32_t id = 0;
};

uint64_t prefixOf(const Tokenizer::Piece& piece) {
  uint8_t first[8] = {};
  std::memcpy(first, piece.data, std::min<size_t>(piece.bytes, sizeof(first)));
  uint64_t prefix = 0;
  for (const uint8_t byte : first) {
    prefix = prefix << 8 | byte;
  }
  return prefix;
}

size_t sameBytes(const Tokenizer::Piece& a, const Tokenizer::Piece& b) {
  const size_t most = std::min(a.bytes, b.bytes);
  size_t same = 0;
  while (same < most && a.data[same] == b.data[same]) {
    ++same;
  }
  return same;
}

struct Looks {
  uint32_t kinds = 0;
  uint8_t length = 0;
};

Looks looksOf(const Tokenizer::Piece& piece) {
  Looks looks;
  uint32_t length = 0;
  for (size_t at = 0; at < piece.bytes; ++length) {
    const Utf8Char next = decodeUtf8(piece.data + at, piece.bytes - at);
    at += next.bytes;
    if (!next.valid || length == kLongestPlain) {
      return {looks.kinds | kindBit(TextKind::kOther), 0};
    }
    looks.kinds |=
        kindBit(next.code_point < 0x80 ? kindOfAscii(static_cast<uint8_t>(next.code_point))
                                       : TextKind::kBeyondAscii);
  }
  looks.length = static_cast<uint8_t>(length);
  return looks;
}

}  // namespace

class TrieBuilder {
 public:
  TrieBuilder(const Tokenizer& tokenizer, Sorted* sorted) : tokenizer_(tokenizer), sorted_(sorted) {
    for (uint32_t id = 0; id < tokenizer.vocabSize(); ++id) {
      n_stops_ += tokenizer.isStop(static_cast<int32_t>(id)) ? 1 : 0;
      if (isText(id)) {
        sorted_[n_tokens_++] = {prefixOf(piece(id)), id};
      }
    }
    std::sort(sorted_, sorted_ + n_tokens_,
              [this](const Sorted& a, const Sorted& b) { return before(a, b); });
    for (uint32_t i = 0; i < n_tokens_; ++i) {
      n_nodes_ += piece(sorted_[i].id).bytes - sharedWithLast(i);
    }
  }

  /// A node knows 24 bits of nodes below it.
  bool fits() const { return n_nodes_ < 1u << 24; }

  TokenTrie* build(Arena* arena) {
    TokenTrie* const trie = reinterpret_cast<TokenTrie*>(arena->take<uint8_t>(sizeof(TokenTrie)));
    const uint32_t n_vocab = tokenizer_.vocabSize();
    const uint32_t n_words = (n_vocab + 31) / 32;
    nodes_ = arena->take<TokenTrie::Node>(n_nodes_);
    having_ = arena->take<uint32_t>(uint64_t{kTextKinds} * n_words);
    lengths_ = arena->take<uint8_t>(uint64_t{32} * n_words);
    int32_t* const stops = arena->take<int32_t>(n_stops_);
    if (trie == nullptr || nodes_ == nullptr || having_ == nullptr || lengths_ == nullptr ||
        stops == nullptr) {
      return nullptr;
    }
    TokenTrie* const built = new (trie) TokenTrie();
    built->n_vocab_ = n_vocab;
    built->n_words_ = n_words;
    built->n_nodes_ = static_cast<uint32_t>(n_nodes_);
    built->n_stops_ = n_stops_;
    built->nodes_ = nodes_;
    built->having_ = having_;
    built->lengths_ = lengths_;
    built->stops_ = stops;
    n_words_ = n_words;
    fillNodes();
    fillOthers(stops);
    return built;
  }

 private:
  bool isText(uint32_t id) const {
    return piece(id).bytes != 0 && piece(id).bytes <= kMaxTokenBytes &&
           !tokenizer_.isStop(static_cast<int32_t>(id));
  }
  Tokenizer::Piece piece(uint32_t id) const {
    return tokenizer_.piece(static_cast<int32_t>(id), false);
  }
  bool before(const Sorted& a, const Sorted& b) const {
    if (a.prefix != b.prefix) {
      return a.prefix < b.prefix;
    }
    const Tokenizer::Piece left = piece(a.id);
    const Tokenizer::Piece right = piece(b.id);
    const int order = std::memcmp(left.data, right.data, std::min(left.bytes, right.bytes));
    if (order != 0) {
      return order < 0;
    }
    return left.bytes != right.bytes ? left.bytes < right.bytes : a.id < b.id;
  }
  // Nodes that token i has with the one before it in common: all but its own.
  size_t sharedWithLast(uint32_t i) const {
    if (i == 0) {
      return 0;
    }
    const Tokenizer::Piece own = piece(sorted_[i].id);
    return std::min(sameBytes(own, piece(sorted_[i - 1].id)), own.bytes - 1);
  }

  void fillNodes() {
    uint32_t count = 0;
    size_t depth = 0;
    for (uint32_t i = 0; i < n_tokens_; ++i) {
      const uint32_t id = sorted_[i].id;
      const Tokenizer::Piece text = piece(id);
      const size_t shared = sharedWithLast(i);
      closeTo(shared, count, &depth);
      for (; depth < text.bytes; ++depth) {
        nodes_[count] = {static_cast<uint8_t>(text.data[depth]), TokenTrie::Node::kNoToken};
        path_[depth] = count++;
      }
      const Looks looks = looksOf(text);
      nodes_[count - 1].kinds_and_token = looks.kinds << 21 | id;
      lengths_[id] = looks.length;
      for (uint32_t kind = 0; kind < kTextKinds; ++kind) {
        having_[static_cast<size_t>(kind) * n_words_ + id / 32] |= (looks.kinds >> kind & 1u)
                                                                   << id % 32;
      }
    }
    closeTo(0, count, &depth);
  }
  // Nodes deeper than `shared` have got all that is below them.
  void closeTo(size_t shared, uint32_t count, size_t* depth) {
    for (; *depth > shared; --*depth) {
      TokenTrie::Node& node = nodes_[path_[*depth - 1]];
      node.byte_and_skip |= (count - path_[*depth - 1]) << 8;
      if (*depth > 1) {
        nodes_[path_[*depth - 2]].kinds_and_token |= node.kinds() << 21;
      }
    }
  }
  void fillOthers(int32_t* stops) {
    uint32_t n_stops = 0;
    uint32_t* const others =
        having_ + static_cast<size_t>(static_cast<uint32_t>(TextKind::kOther)) * n_words_;
    for (uint32_t id = 0; id < 32 * n_words_; ++id) {
      const bool known = id < tokenizer_.vocabSize();
      if (known && tokenizer_.isStop(static_cast<int32_t>(id))) {
        stops[n_stops++] = static_cast<int32_t>(id);
      }
      if (!known || !isText(id)) {
        others[id / 32] |= 1u << id % 32;
      }
    }
  }

  const Tokenizer& tokenizer_;
  Sorted* const sorted_;
  uint32_t n_tokens_ = 0;
  uint32_t n_stops_ = 0;
  uint32_t n_words_ = 0;
  uint64_t n_nodes_ = 0;
  TokenTrie::Node* nodes_ = nullptr;
  uint32_t* having_ = nullptr;
  uint8_t* lengths_ = nullptr;
  uint32_t path_[kMaxTokenBytes] = {};
};

Status TokenTrie::build(const Tokenizer& tokenizer, const oriel_allocator& allocator,
                        const Log& log, Arena* arena, TokenTrie** trie) {
  *trie = nullptr;
  Scratch scratch(allocator, SIZE_MAX);
  Sorted* const sorted = scratch.take<Sorted>(tokenizer.vocabSize());
  if (sorted == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "no memory to sort the vocabulary: close other apps");
  }
  TrieBuilder builder(tokenizer, sorted);
  if (!builder.fits()) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the vocabulary's tokens are too long to hold replies to a grammar: load the "
                    "model without constraints");
  }
  *trie = builder.build(arena);
  if (*trie == nullptr && !arena->measuring()) {
    return log.fail(ORIEL_ERROR_INTERNAL, "the host arena is too small: please report this");
  }
  return kOk;
}

}  // namespace oriel
