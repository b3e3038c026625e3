// Grammars in tests: texts of expressions and schemas, and cases. Tests only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "grammar/expression.h"
#include "grammar/grammar.h"
#include "grammar/machine.h"
#include "support/captured_log.h"
#include "support/tokenizer_case.h"
#include "text/unicode.h"

namespace oriel_internal::test {

// Makes and recognises texts of a grammar's expressions without the library's automaton, by their definition. Tests
// only.

inline void appendUtf8(uint32_t c, std::string* text) {
  if (c < 0x80) {
    *text += static_cast<char>(c);
  } else if (c < 0x800) {
    *text += static_cast<char>(0xC0 | c >> 6);
    *text += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    *text += static_cast<char>(0xE0 | c >> 12);
    *text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    *text += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    *text += static_cast<char>(0xF0 | c >> 18);
    *text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    *text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    *text += static_cast<char>(0x80 | (c & 0x3F));
  }
}

/// Recognises texts by tracking all possible positions after each part.
class Recogniser {
 public:
  Recogniser(const Grammar& grammar, const std::string& text) : g_(grammar), text_(text) {}

  bool accepts(ExprId root) { return ends(root, 0).count(text_.size()) != 0; }

 private:
  using Ends = std::set<size_t>;

  const Ends& ends(ExprId id, size_t from) {
    const std::pair<ExprId, size_t> key = {id, from};
    if (const auto known = known_.find(key); known != known_.end()) {
      return known->second;
    }
    const Ends found = find(id, from);
    return known_[key] = found;
  }

  Ends find(ExprId id, size_t from) {
    const Expr& e = g_.at(id);
    switch (e.kind) {
      case ExprKind::kEmpty:
        return {from};
      case ExprKind::kNever:
        return {};
      case ExprKind::kBytes: {
        const std::string bytes(static_cast<const char*>(e.data), e.left);
        return text_.compare(from, bytes.size(), bytes) == 0 ? Ends{from + bytes.size()} : Ends{};
      }
      case ExprKind::kChars:
        return character(e, from);
      case ExprKind::kSequence: {
        Ends all;
        for (const size_t middle : Ends(ends(e.left, from))) {
          const Ends& right = ends(e.right, middle);
          all.insert(right.begin(), right.end());
        }
        return all;
      }
      case ExprKind::kChoice: {
        Ends all = ends(e.left, from);
        const Ends& right = ends(e.right, from);
        all.insert(right.begin(), right.end());
        return all;
      }
      case ExprKind::kRepeat:
        return repeated(e, from);
      case ExprKind::kRule:
        return ends(g_.definition(e.left), from);
    }
    return {};
  }

  Ends character(const Expr& e, size_t from) const {
    if (from >= text_.size()) {
      return {};
    }
    const Utf8Char c = decodeUtf8(text_.data() + from, text_.size() - from);
    const auto* const ranges = static_cast<const CharRange*>(e.data);
    const bool in = c.valid && std::any_of(ranges, ranges + e.left, [&](const CharRange& range) {
                      return range.first <= c.code_point && c.code_point <= range.last;
                    });
    return in ? Ends{from + c.bytes} : Ends{};
  }

  Ends repeated(const Expr& e, size_t from) {
    Ends all;
    Ends now = {from};
    Ends seen;
    for (uint32_t n = 0; !now.empty(); ++n) {
      if (n >= e.min) {
        all.insert(now.begin(), now.end());
      }
      if (e.max != kAnyTimes && n == e.max) {
        break;
      }
      Ends next;
      for (const size_t at : now) {
        for (const size_t end : Ends(ends(e.left, at))) {
          // Beyond the minimum, positions reached before lead nowhere new.
          if (n < e.min || seen.insert(end).second) {
            next.insert(end);
          }
        }
      }
      now = next;
    }
    return all;
  }

  const Grammar& g_;
  const std::string& text_;
  std::map<std::pair<ExprId, size_t>, Ends> known_;
};

/// Random texts.
class TextMaker {
 public:
  explicit TextMaker(const Grammar& grammar) : g_(grammar), least_(grammar.count(), kNever) {
    for (bool changed = true; changed;) {
      changed = false;
      for (ExprId id = 0; id < g_.count(); ++id) {
        const double least = leastOf(id);
        changed = changed || least < least_[id];
        least_[id] = std::min(least, least_[id]);
      }
    }
  }

  /// About `budget` steps, then the shortest way to the end.
  std::string make(ExprId root, std::mt19937* random, int budget) {
    text_.clear();
    random_ = random;
    budget_ = budget;
    put(root);
    return text_;
  }

 private:
  static constexpr double kNever = 1e300;

  double leastOf(ExprId id) const {
    const Expr& e = g_.at(id);
    switch (e.kind) {
      case ExprKind::kEmpty:
        return 0;
      case ExprKind::kNever:
        return kNever;
      case ExprKind::kBytes:
        return e.left;
      case ExprKind::kChars:
        return 1;
      case ExprKind::kSequence:
        return least_[e.left] + least_[e.right];
      case ExprKind::kChoice:
        return std::min(least_[e.left], least_[e.right]);
      case ExprKind::kRepeat:
        return e.min == 0 ? 0 : least_[e.left] * e.min;
      case ExprKind::kRule:
        return 1e-6 + (g_.definition(e.left) < g_.count() ? least_[g_.definition(e.left)] : kNever);
    }
    return kNever;
  }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>((*random_)() % n); }

  void put(ExprId id) {
    const Expr& e = g_.at(id);
    --budget_;
    switch (e.kind) {
      case ExprKind::kEmpty:
      case ExprKind::kNever:
        return;
      case ExprKind::kBytes:
        text_.append(static_cast<const char*>(e.data), e.left);
        return;
      case ExprKind::kChars:
        putCharacter(e);
        return;
      case ExprKind::kSequence:
        put(e.left);
        put(e.right);
        return;
      case ExprKind::kChoice: {
        const double left = least_[e.left];
        const double right = least_[e.right];
        const bool forced = budget_ <= 0 || left >= kNever || right >= kNever;
        put(forced ? (left <= right ? e.left : e.right) : below(2) == 0 ? e.left : e.right);
        return;
      }
      case ExprKind::kRepeat: {
        const uint32_t more = e.max == kAnyTimes ? 20 : std::min(e.max - e.min, 400u);
        uint32_t n = e.min;
        if (budget_ > 0 && least_[e.left] < kNever) {
          n += below(4) == 0 ? more : below(std::min(more, 5u) + 1);
        }
        for (uint32_t i = 0; i < n; ++i) {
          put(e.left);
        }
        return;
      }
      case ExprKind::kRule:
        put(g_.definition(e.left));
        return;
    }
  }

  void putCharacter(const Expr& e) {
    const CharRange range = static_cast<const CharRange*>(e.data)[below(e.left)];
    // Prefers the ends of ranges.
    const uint32_t span = range.last - range.first + 1;
    const uint32_t kind = below(6);
    const uint32_t near = std::min(span, 96u);
    appendUtf8(kind == 0   ? range.first
               : kind == 1 ? range.last
               : kind == 2 ? range.first + below(span)
                           : range.first + below(near),
               &text_);
  }

  const Grammar& g_;
  std::vector<double> least_;
  std::string text_;
  std::mt19937* random_ = nullptr;
  int budget_ = 0;
};

// A JSON schema as expressions, and its texts. Tests only.

class SchemaTexts {
 public:
  static constexpr size_t kMostBytes = 64u << 20;

  explicit SchemaTexts(const std::string& schema, size_t most_bytes = kMostBytes)
      : SchemaTexts(schema, SchemaRules(), most_bytes) {}
  SchemaTexts(const std::string& schema, SchemaRules rules, size_t most_bytes = kMostBytes)
      : text_(schema), scratch_(allocator_, most_bytes), grammar_(&scratch_) {
    const JsonValue* value = nullptr;
    rules.ignored = &ignored_;
    grammar_.work()->allow(text_.size());
    status_ = parseJson(text_.data(), text_.size(), "the schema", log_.log(), &scratch_, &value);
    if (status_.ok()) {
      status_ = readJsonSchema(*value, *value, rules, log_.log(), &grammar_, &root_);
    }
  }

  bool ok() const { return status_.ok(); }
  oriel_status code() const { return status_.code(); }
  std::string errors() const { return log_.errors(); }
  /// Ignored keywords and formats, as a JSON list.
  std::string ignored() const { return ignored_.json(); }
  const Grammar& grammar() const { return grammar_; }
  /// With the expression as its root, for compiling.
  const Grammar& rooted() {
    const RuleId rule = grammar_.newRule();
    grammar_.define(rule, root_);
    grammar_.setRoot(rule);
    return grammar_;
  }
  size_t usedBytes() const { return scratch_.usedBytes(); }
  bool accepts(const std::string& text) const {
    return ok() && Recogniser(grammar_, text).accepts(root_);
  }
  std::vector<std::string> make(int count, uint32_t seed = 1) const {
    std::vector<std::string> texts;
    TextMaker maker(grammar_);
    std::mt19937 random(seed);
    for (int i = 0; i < count; ++i) {
      texts.push_back(maker.make(root_, &random, 20 + 40 * (i % 10)));
    }
    return texts;
  }

 private:
  static void* allocate(size_t bytes, void*) { return ::operator new(bytes, std::nothrow); }
  static void release(void* memory, size_t, void*) { ::operator delete(memory); }
  static oriel_allocator plainAllocator() {
    oriel_allocator allocator = {};
    allocator.allocate = allocate;
    allocator.release = release;
    return allocator;
  }

  const std::string text_;
  const oriel_allocator allocator_ = plainAllocator();
  CapturedLog log_;
  IgnoredKeywords ignored_;
  Scratch scratch_;
  Grammar grammar_;
  Status status_ = kOk;
  ExprId root_ = 0;
};

/// Checks that a schema has these texts and lacks those.
inline void expectTexts(const std::string& schema, const std::vector<std::string>& has,
                        const std::vector<std::string>& has_not, const SchemaRules& rules = {}) {
  const SchemaTexts texts(schema, rules);
  ASSERT_TRUE(texts.ok()) << texts.errors();
  for (const std::string& text : has) {
    EXPECT_TRUE(texts.accepts(text)) << schema << " has " << text;
  }
  for (const std::string& text : has_not) {
    EXPECT_FALSE(texts.accepts(text)) << schema << " has not " << text;
  }
}

/// Checks that a schema is refused with these words.
inline void expectRefused(const std::string& schema, oriel_status code, const std::string& words,
                          const SchemaRules& rules = {}) {
  const SchemaTexts texts(schema, rules);
  const std::string named = schema.substr(0, 300) + ": " + texts.errors();
  EXPECT_EQ(code, texts.code()) << named;
  EXPECT_NE(std::string::npos, texts.errors().find(words)) << named;
}

// A grammar with a small vocabulary, and a slow recogniser for comparison. Tests only.

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
