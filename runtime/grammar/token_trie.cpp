#include "grammar/machine.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/arena.h"
#include "grammar/expression.h"
#include "text/unicode.h"

namespace oriel_internal {

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
  uint64_t prefix = 0;  ///< the first eight bytes, zero-padded
  uint32_t id = 0;
  uint16_t kinds = 0;
  uint8_t length = 0;
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
  TrieBuilder(const Tokenizer& tokenizer, Sorted* sorted, uint32_t* order, TokenMark* marks)
      : tokenizer_(tokenizer), sorted_(sorted), marks_(marks) {
    for (uint32_t id = 0; id < tokenizer.vocabSize(); ++id) {
      marks_[id] = TokenMark(static_cast<int32_t>(id));
    }
    uint32_t n_tokens = 0;
    for (uint32_t id = 0; id < tokenizer.vocabSize(); ++id) {
      n_stops_ += tokenizer.isStop(static_cast<int32_t>(id)) ? 1 : 0;
      if (isText(id)) {
        const Looks looks = looksOf(piece(id));
        sorted_[n_tokens++] = {prefixOf(piece(id)), id, static_cast<uint16_t>(looks.kinds),
                               looks.length};
      }
    }
    std::sort(sorted_, sorted_ + n_tokens,
              [this](const Sorted& a, const Sorted& b) { return before(a, b); });
    all_.order = order;
    odd_.order = order + n_tokens;
    for (uint32_t i = 0; i < n_tokens; ++i) {
      all_.add(i);
      if ((sorted_[i].kinds & kOddKinds) != 0) {
        odd_.add(i);
      }
    }
    countNodes(&all_);
    countNodes(&odd_);
  }

  /// A node has 24 bits for the nodes below it.
  bool fits() const { return all_.n_nodes < 1u << 24; }

  TokenTrie* build(Arena* arena) {
    TokenTrie* const trie = reinterpret_cast<TokenTrie*>(arena->take<uint8_t>(sizeof(TokenTrie)));
    const uint32_t n_vocab = tokenizer_.vocabSize();
    n_words_ = (n_vocab + 31) / 32;
    TokenTrie::Node* const all = arena->take<TokenTrie::Node>(all_.n_nodes);
    TokenTrie::Node* const odd = arena->take<TokenTrie::Node>(odd_.n_nodes);
    having_ = arena->take<uint32_t>(uint64_t{kTextKinds} * n_words_);
    lengths_ = arena->take<uint8_t>(uint64_t{n_vocab + 63} / 64 * 64);
    int32_t* const stops = arena->take<int32_t>(n_stops_);
    if (trie == nullptr || all == nullptr || odd == nullptr || having_ == nullptr ||
        lengths_ == nullptr || stops == nullptr) {
      return nullptr;
    }
    TokenTrie* const built = new (trie) TokenTrie();
    built->n_vocab_ = n_vocab;
    built->n_words_ = n_words_;
    built->n_stops_ = n_stops_;
    built->all_ = {all, static_cast<uint32_t>(all_.n_nodes)};
    built->odd_ = {odd, static_cast<uint32_t>(odd_.n_nodes)};
    built->having_ = having_;
    built->lengths_ = lengths_;
    built->stops_ = stops;
    fillNodes(all_, all);
    fillNodes(odd_, odd);
    fillTokens(stops);
    return built;
  }

 private:
  /// A subset of the tokens, sorted by bytes.
  struct Part {
    uint32_t* order = nullptr;  ///< in sorted_
    uint32_t count = 0;
    uint64_t n_nodes = 0;

    void add(uint32_t i) { order[count++] = i; }
  };

  bool isText(uint32_t id) const {
    return piece(id).bytes != 0 && piece(id).bytes <= kMaxTokenBytes &&
           !tokenizer_.isStop(static_cast<int32_t>(id));
  }
  Tokenizer::Piece piece(uint32_t id) const {
    const int32_t token = static_cast<int32_t>(id);
    const Tokenizer::Piece text = tokenizer_.piece(token, false);
    return text.bytes == 0 && tokenizer_.isControl(token)
               ? Tokenizer::Piece{marks_[id].bytes, TokenMark::kBytes}
               : text;
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
  // Nodes that token i shares with the previous token: all except its own.
  size_t sharedWithLast(const Part& part, uint32_t i) const {
    if (i == 0) {
      return 0;
    }
    const Tokenizer::Piece own = piece(sorted_[part.order[i]].id);
    return std::min(sameBytes(own, piece(sorted_[part.order[i - 1]].id)), own.bytes - 1);
  }
  void countNodes(Part* part) const {
    for (uint32_t i = 0; i < part->count; ++i) {
      part->n_nodes += piece(sorted_[part->order[i]].id).bytes - sharedWithLast(*part, i);
    }
  }

  void fillNodes(const Part& part, TokenTrie::Node* nodes) {
    uint32_t count = 0;
    size_t depth = 0;
    for (uint32_t i = 0; i < part.count; ++i) {
      const Sorted& token = sorted_[part.order[i]];
      const Tokenizer::Piece text = piece(token.id);
      closeTo(sharedWithLast(part, i), count, &depth, nodes);
      for (; depth < text.bytes; ++depth) {
        nodes[count] = {static_cast<uint8_t>(text.data[depth]), TokenTrie::Node::kNoToken};
        path_[depth] = count++;
      }
      nodes[count - 1].kinds_and_token = uint32_t{token.kinds} << 21 | token.id;
    }
    closeTo(0, count, &depth, nodes);
  }
  // Completes the nodes deeper than `shared`.
  void closeTo(size_t shared, uint32_t count, size_t* depth, TokenTrie::Node* nodes) {
    for (; *depth > shared; --*depth) {
      TokenTrie::Node& node = nodes[path_[*depth - 1]];
      node.byte_and_skip |= (count - path_[*depth - 1]) << 8;
      if (*depth > 1) {
        nodes[path_[*depth - 2]].kinds_and_token |= node.kinds() << 21;
      }
    }
  }
  void fillTokens(int32_t* stops) {
    for (uint32_t i = 0; i < all_.count; ++i) {
      const Sorted& token = sorted_[all_.order[i]];
      const uint32_t bit = token.id % 64;
      lengths_[token.id - bit + 8 * (bit % 8) + bit / 8] = token.length;
      for (uint32_t kind = 0; kind < kTextKinds; ++kind) {
        having_[static_cast<size_t>(kind) * n_words_ + token.id / 32] |= (token.kinds >> kind & 1u)
                                                                         << token.id % 32;
      }
    }
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
  TokenMark* const marks_;  ///< of each token
  Part all_;
  Part odd_;
  uint32_t n_stops_ = 0;
  uint32_t n_words_ = 0;
  uint32_t* having_ = nullptr;
  uint8_t* lengths_ = nullptr;
  uint32_t path_[kMaxTokenBytes] = {};
};

TokenTrie TokenTrie::withoutTables() const {
  TokenTrie facts = *this;
  facts.all_.nodes = facts.odd_.nodes = nullptr;
  facts.having_ = nullptr;
  facts.lengths_ = nullptr;
  facts.stops_ = nullptr;
  return facts;
}

namespace {

// True if every node ends within its parent and names a token of the vocabulary.
[[gnu::cold]] bool isTrie(const TokenTrie::Tree& tree, uint32_t n_vocab) {
  uint32_t ends[kMaxTokenBytes] = {};
  uint32_t depth = 0;
  for (uint32_t i = 0; i < tree.count; ++i) {
    while (depth != 0 && ends[depth - 1] == i) {
      --depth;
    }
    const TokenTrie::Node& node = tree.nodes[i];
    const uint32_t most = (depth != 0 ? ends[depth - 1] : tree.count) - i;
    const bool named = node.token() != TokenTrie::Node::kNoToken;
    if (node.skip() == 0 || node.skip() > most || depth == kMaxTokenBytes ||
        (named && node.token() >= n_vocab)) {
      return false;
    }
    ends[depth++] = i + node.skip();
  }
  return true;
}

}  // namespace

[[gnu::cold]] TokenTrie* TokenTrie::copyOf(const TokenizerBlock& saved, uint32_t n_vocab,
                                           Arena* arena) {
  uint8_t* const block = arena->take<uint8_t>(saved.bytes);
  if (block == nullptr || saved.bytes < sizeof(TokenTrie)) {
    return nullptr;
  }
  std::memcpy(block, saved.data, static_cast<size_t>(saved.bytes));
  TokenTrie* const trie = reinterpret_cast<TokenTrie*>(block);
  const uint64_t n_lengths = uint64_t{n_vocab + 63} / 64 * 64;
  uint64_t at = 0;
  const auto next = [&](uint64_t bytes) {
    const uint8_t* const piece = block + at;
    at = alignUp(at + bytes, Arena::kAlignment);
    return piece;
  };
  (void)next(sizeof(TokenTrie));
  trie->all_.nodes = reinterpret_cast<const Node*>(next(trie->all_.count * sizeof(Node)));
  trie->odd_.nodes = reinterpret_cast<const Node*>(next(trie->odd_.count * sizeof(Node)));
  trie->having_ = reinterpret_cast<const uint32_t*>(
      next(uint64_t{kTextKinds} * trie->n_words_ * sizeof(uint32_t)));
  trie->lengths_ = next(n_lengths);
  trie->stops_ = reinterpret_cast<const int32_t*>(next(trie->n_stops_ * sizeof(int32_t)));
  const bool fits =
      at == saved.bytes && trie->n_vocab_ == n_vocab && trie->n_words_ == (n_vocab + 31) / 32 &&
      isTrie(trie->all_, n_vocab) && isTrie(trie->odd_, n_vocab) &&
      std::all_of(trie->lengths_, trie->lengths_ + n_lengths,
                  [](uint8_t length) { return length <= kLongestPlain; }) &&
      std::all_of(trie->stops_, trie->stops_ + trie->n_stops_,
                  [&](int32_t id) { return id >= 0 && static_cast<uint32_t>(id) < n_vocab; });
  return fits ? trie : nullptr;
}

Status TokenTrie::build(const Tokenizer& tokenizer, const oriel_allocator& allocator,
                        const Log& log, Arena* arena, TokenTrie** trie, const StopCheck& stop) {
  *trie = nullptr;
  ORIEL_TRY(stop.check());
  Scratch scratch(allocator, SIZE_MAX);
  Sorted* const sorted = scratch.take<Sorted>(tokenizer.vocabSize());
  uint32_t* const order = scratch.take<uint32_t>(uint64_t{2} * tokenizer.vocabSize());
  TokenMark* const marks = scratch.take<TokenMark>(tokenizer.vocabSize());
  if (sorted == nullptr || order == nullptr || marks == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "no memory to sort the vocabulary: close other apps");
  }
  TrieBuilder builder(tokenizer, sorted, order, marks);
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

}  // namespace oriel_internal
