// A grammar with a small vocabulary, and a slow recogniser for comparison. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "grammar/gbnf.h"
#include "grammar/machine.h"
#include "support/tokenizer_case.h"

namespace oriel_internal::test {

/// Bytes as the letters of byte-level vocabularies (GPT-2's table).
inline std::string byteLevel(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) {
    const uint32_t byte = static_cast<uint8_t>(c);
    const auto isPlain = [](uint32_t b) {
      return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    };
    uint32_t letter = byte;
    if (!isPlain(byte)) {
      letter = 256;
      for (uint32_t b = 0; b < byte; ++b) {
        letter += isPlain(b) ? 0 : 1;
      }
    }
    if (letter < 0x80) {
      out += static_cast<char>(letter);
    } else {
      out += static_cast<char>(0xC0 | letter >> 6);
      out += static_cast<char>(0x80 | (letter & 0x3F));
    }
  }
  return out;
}

/// All 256 bytes, then these tokens, then <|endoftext|> (control, ends a text).
inline Vocabulary byteVocabulary(const std::vector<std::string>& tokens, bool with_bytes = true) {
  Vocabulary vocabulary;
  for (int byte = 0; with_bytes && byte < 256; ++byte) {
    vocabulary.add(byteLevel(std::string(1, static_cast<char>(byte))));
  }
  for (const std::string& token : tokens) {
    vocabulary.add(byteLevel(token));
  }
  vocabulary.add("<|endoftext|>", kControlType);
  return vocabulary;
}

/// A tokenizer with its trie, and constraints over them.
class GrammarCase {
 public:
  explicit GrammarCase(const Vocabulary& vocabulary) : GrammarCase(vocabulary.writer().build()) {}
  explicit GrammarCase(const std::vector<uint8_t>& file) : tokens(file) {
    EXPECT_TRUE(tokens.status.ok()) << tokens.log.errors();
    Arena measure;
    EXPECT_TRUE(
        TokenTrie::build(*tokens.tokenizer, defaultAllocator(), tokens.log.log(), &measure, &trie)
            .ok());
    trie_bytes = measure.used();
    trie_block_.resize(trie_bytes / 8);
    Arena arena(trie_block_.data(), trie_bytes);
    EXPECT_TRUE(
        TokenTrie::build(*tokens.tokenizer, defaultAllocator(), tokens.log.log(), &arena, &trie)
            .ok());
    EXPECT_EQ(trie_bytes, arena.used());
  }

  /// One more constraint, without a grammar.
  Constraint* add(size_t bytes = kConstraintBytes) {
    const uint32_t n_vocab = tokens.tokenizer->vocabSize();
    Arena measure;
    EXPECT_EQ(nullptr, Constraint::create(n_vocab, nullptr, nullptr, &measure, bytes));
    constraint_bytes = measure.used();
    blocks_.emplace_back(measure.used() / 8);
    Arena arena(blocks_.back().data(), measure.used());
    Constraint* const constraint =
        Constraint::create(n_vocab, tokens.tokenizer, trie, &arena, bytes);
    EXPECT_EQ(measure.used(), arena.used());
    return constraint;
  }
  Status compileGbnf(Constraint* constraint, const std::string& text, int32_t extra_stop = -1) {
    Scratch scratch(defaultAllocator(), size_t{64} << 20);
    Grammar grammar(&scratch);
    ORIEL_TRY(readGbnf(text.data(), text.size(), log.log(), &grammar));
    return constraint->compile(grammar, extra_stop, log.log());
  }
  Constraint* gbnf(const std::string& text, int32_t extra_stop = -1) {
    Constraint* const constraint = add();
    EXPECT_TRUE(compileGbnf(constraint, text, extra_stop).ok()) << log.errors();
    return constraint;
  }

  std::string textOf(int32_t id) const {
    const Tokenizer::Piece piece = tokens.tokenizer->piece(id, false);
    return {piece.data, piece.bytes};
  }
  int32_t size() const { return static_cast<int32_t>(tokens.tokenizer->vocabSize()); }

  TokenizerCase tokens;
  TokenTrie* trie = nullptr;
  uint64_t trie_bytes = 0;
  uint64_t constraint_bytes = 0;
  CapturedLog log;

 private:
  std::vector<uint64_t> trie_block_;
  std::vector<std::vector<uint64_t>> blocks_;
};

inline bool bitOf(const uint32_t* mask, int32_t id) { return (mask[id / 32] >> id % 32 & 1u) != 0; }

inline std::vector<int32_t> idsOf(const uint32_t* mask, int32_t n_vocab) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < n_vocab; ++id) {
    if (bitOf(mask, id)) {
      ids.push_back(id);
    }
  }
  return ids;
}

/// Follows the definition of every expression with all possible ends. Uses no automaton.
class SlowRecogniser {
 public:
  explicit SlowRecogniser(const Grammar& grammar) : grammar_(grammar) {
    productive_.assign(grammar.count(), false);
    for (bool more = true; more;) {
      more = false;
      for (ExprId id = 0; id < grammar.count(); ++id) {
        if (!productive_[id] && isProductive(grammar.at(id))) {
          productive_[id] = more = true;
        }
      }
    }
  }

  bool matches(const std::string& text) {
    begin(text);
    return ends(root(), 0).count(text.size()) != 0;
  }
  /// True if some matching text begins with this text.
  bool begins(const std::string& text) {
    begin(text);
    return goesOn(root(), 0);
  }

 private:
  using Ends = std::set<size_t>;

  ExprId root() const { return grammar_.definition(grammar_.root()); }
  void begin(const std::string& text) {
    text_ = text;
    ends_.clear();
    goes_on_.clear();
  }
  bool isProductive(const Expr& e) const {
    switch (e.kind) {
      case ExprKind::kNever:
        return false;
      case ExprKind::kSequence:
        return productive_[e.left] && productive_[e.right];
      case ExprKind::kChoice:
        return productive_[e.left] || productive_[e.right];
      case ExprKind::kRepeat:
        return e.min == 0 || productive_[e.left];
      case ExprKind::kRule:
        return productive_[grammar_.definition(e.left)];
      default:
        return true;
    }
  }

  const Ends& ends(ExprId id, size_t at) {
    const auto known = ends_.find({id, at});
    if (known != ends_.end()) {
      return known->second;
    }
    Ends found;
    if (!productive_[id]) {
      return ends_[{id, at}] = found;  // it may recurse without taking a byte
    }
    const Expr& e = grammar_.at(id);
    switch (e.kind) {
      case ExprKind::kEmpty:
        found.insert(at);
        break;
      case ExprKind::kNever:
        break;
      case ExprKind::kBytes:
        if (text_.compare(at, e.left, bytesOf(e)) == 0) {
          found.insert(at + e.left);
        }
        break;
      case ExprKind::kChars: {
        const size_t length = lengthAt(at);
        if (length != 0 && at + length <= text_.size() && inRanges(e, at, length, length)) {
          found.insert(at + length);
        }
        break;
      }
      case ExprKind::kSequence:
        for (const size_t middle : Ends(ends(e.left, at))) {
          const Ends& more = ends(e.right, middle);
          found.insert(more.begin(), more.end());
        }
        break;
      case ExprKind::kChoice:
        found = ends(e.left, at);
        found.insert(ends(e.right, at).begin(), ends(e.right, at).end());
        break;
      case ExprKind::kRepeat:
        forEachCount(e, at, [&](uint32_t count, size_t place) {
          if (count >= e.min) {
            found.insert(place);
          }
        });
        break;
      case ExprKind::kRule:
        found = ends(grammar_.definition(e.left), at);
        break;
    }
    return ends_[{id, at}] = found;
  }

  bool goesOn(ExprId id, size_t at) {
    const auto known = goes_on_.find({id, at});
    if (known != goes_on_.end()) {
      return known->second;
    }
    if (!productive_[id]) {
      return goes_on_[{id, at}] = false;
    }
    const Expr& e = grammar_.at(id);
    const size_t left = text_.size() - at;
    bool result = false;
    switch (e.kind) {
      case ExprKind::kEmpty:
        result = left == 0;
        break;
      case ExprKind::kNever:
        break;
      case ExprKind::kBytes:
        result = left <= e.left && bytesOf(e).compare(0, left, text_, at, left) == 0;
        break;
      case ExprKind::kChars:
        result = left == 0;
        if (left != 0) {
          const size_t length = lengthAt(at);
          result = length != 0 && left <= length && inRanges(e, at, left, length);
        }
        break;
      case ExprKind::kSequence:
        result = productive_[e.right] && goesOn(e.left, at);
        for (const size_t middle : Ends(ends(e.left, at))) {
          result = result || goesOn(e.right, middle);
        }
        break;
      case ExprKind::kChoice:
        result = goesOn(e.left, at) || goesOn(e.right, at);
        break;
      case ExprKind::kRepeat:
        forEachCount(e, at, [&](uint32_t count, size_t place) {
          result = result || (count >= e.min && place == text_.size()) ||
                   (count < e.max && productive_[e.left] && goesOn(e.left, place));
        });
        break;
      case ExprKind::kRule:
        result = goesOn(grammar_.definition(e.left), at);
        break;
    }
    return goes_on_[{id, at}] = result;
  }

  // Visits every position after every possible number of repetitions.
  template <typename Visitor>
  void forEachCount(const Expr& e, size_t at, const Visitor& visit) {
    Ends places = {at};
    for (uint32_t count = 0; !places.empty(); ++count) {
      for (const size_t place : places) {
        visit(count, place);
      }
      if (count == e.max || count > e.min + text_.size() + 1) {
        return;  // more repetitions than bytes: only empty ones can follow
      }
      Ends next;
      for (const size_t place : places) {
        const Ends more = ends(e.left, place);
        next.insert(more.begin(), more.end());
      }
      places = next;
    }
  }

  static std::string bytesOf(const Expr& e) { return {static_cast<const char*>(e.data), e.left}; }
  // Length of the character at this place, by its first byte; 0: none.
  size_t lengthAt(size_t at) const {
    if (at >= text_.size()) {
      return 0;
    }
    const uint8_t lead = static_cast<uint8_t>(text_[at]);
    return lead < 0x80   ? 1
           : lead < 0xC2 ? 0
           : lead < 0xE0 ? 2
           : lead < 0xF0 ? 3
           : lead < 0xF5 ? 4
                         : 0;
  }
  // True if these `known` bytes begin a character of `length` bytes in the ranges.
  bool inRanges(const Expr& e, size_t at, size_t known, size_t length) const {
    constexpr uint32_t kFirst[] = {0, 0, 0x80, 0x800, 0x10000};
    constexpr uint32_t kLast[] = {0, 0x7F, 0x7FF, 0xFFFF, 0x10FFFF};
    uint32_t low = static_cast<uint8_t>(text_[at]);
    low = length == 1 ? low : low & (0x7Fu >> length);
    for (size_t i = 1; i < known; ++i) {
      const uint8_t byte = static_cast<uint8_t>(text_[at + i]);
      if (byte < 0x80 || byte > 0xBF) {
        return false;
      }
      low = low << 6 | (byte & 0x3Fu);
    }
    const uint32_t unknown = static_cast<uint32_t>(6 * (length - known));
    const uint32_t first = std::max(low << unknown, kFirst[length]);
    const uint32_t last = std::min((low << unknown) + ((1u << unknown) - 1), kLast[length]);
    const CharRange* const ranges = static_cast<const CharRange*>(e.data);
    for (uint32_t i = 0; i < e.left; ++i) {
      if (std::max(first, ranges[i].first) <= std::min(last, ranges[i].last)) {
        return true;
      }
    }
    return false;
  }

  const Grammar& grammar_;
  std::vector<bool> productive_;
  std::string text_;
  std::map<std::pair<ExprId, size_t>, Ends> ends_;
  std::map<std::pair<ExprId, size_t>, bool> goes_on_;
};

}  // namespace oriel_internal::test
