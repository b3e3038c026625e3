// The cost limit for making a grammar, and its temporary memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/arena.h"
#include "base/log.h"
#include "base/steps.h"

namespace oriel_internal {

/// For memory that is needed only while one automaton is built.
constexpr size_t kMostDfaBytes = 32u << 20;

/// Steps for all schemas, patterns and rules of a grammar, and memory for building its automata.
class Work : public Steps {
 public:
  /// For a text of any size: 17 times the need of the largest reference schema.
  static constexpr uint64_t kBaseSteps = 100'000'000;
  /// Additional steps per byte of text.
  static constexpr uint64_t kStepsPerByte = 25'000;
  /// For the longest text: at most 0.5 s of one core.
  static constexpr uint64_t kMostSteps = 250'000'000;

  Work(Scratch* around, const StopCheck& stop) : Steps(kBaseSteps, stop), around_(around) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Allows for a text of this many bytes.
  void allow(size_t text_bytes) {
    const uint64_t bytes = std::min<uint64_t>(text_bytes, kMostSteps / kStepsPerByte);
    raise(std::min(mostSteps() + bytes * kStepsPerByte, kMostSteps));
  }

  /// Memory outside the grammar, up to kMostDfaBytes. Invalidates earlier memory from it. Later patterns reuse it instead
  /// of asking the system again.
  Scratch* begin();
  Scratch* scratch() { return &*room_; }
  /// The system refused memory; the grammar has failed.
  bool noMemory() const { return room_.has_value() && room_->noMemory(); }

 private:
  Scratch* const around_;
  std::optional<Scratch> room_;
  Scratch::Place empty_;
};

// A growing array in borrowed memory. Elements without memory are dropped: check the scratch for failure.

template <typename T>
class List {
 public:
  explicit List(Scratch* scratch) : scratch_(scratch) {}

  bool push(const T& item) {
    if (count_ == capacity_ && !grow()) {
      return false;
    }
    items_[count_++] = item;
    return true;
  }
  uint32_t count() const { return count_; }
  bool isEmpty() const { return count_ == 0; }
  void cutTo(uint32_t count) { count_ = count; }
  T& operator[](uint32_t i) { return items_[i]; }
  const T& operator[](uint32_t i) const { return items_[i]; }
  T* begin() { return items_; }
  T* end() { return items_ + count_; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + count_; }
  T& last() { return items_[count_ - 1]; }

 private:
  bool grow() {
    const uint32_t wanted = capacity_ == 0 ? 8 : capacity_ * 2;
    T* const items = scratch_->take<T>(wanted);
    if (items == nullptr) {
      return false;
    }
    std::copy_n(items_, count_, items);
    items_ = items;
    capacity_ = wanted;
    return true;
  }

  Scratch* scratch_;
  T* items_ = nullptr;
  uint32_t count_ = 0;
  uint32_t capacity_ = 0;
};

// Expressions for texts. GBNF grammars, JSON schemas and tool calls become expressions, and these become an automaton.
// Knows nothing of tokens.

/// Code points first to last, inclusive.
struct CharRange {
  uint32_t first = 0;
  uint32_t last = 0;
};

constexpr uint32_t kLastCodePoint = 0x10FFFF;
constexpr CharRange kSurrogates = {0xD800, 0xDFFF};

/// A control token in a grammar and in the vocabulary's trie, spelled with bytes that occur in no text.
struct TokenMark {
  static constexpr size_t kBytes = 4;
  char bytes[kBytes];

  explicit TokenMark(int32_t id)
      : bytes{static_cast<char>(0xFF), digit(id, 14), digit(id, 7), digit(id, 0)} {}

 private:
  static char digit(int32_t id, int shift) {
    return static_cast<char>(0x80 | (static_cast<uint32_t>(id) >> shift & 0x7F));
  }
};

using ExprId = uint32_t;
using RuleId = uint32_t;
constexpr uint32_t kAnyTimes = UINT32_MAX;

enum class ExprKind : uint8_t {
  kEmpty,     ///< the empty text
  kNever,     ///< matches nothing
  kBytes,     ///< these bytes
  kChars,     ///< one code point in some ranges, as UTF-8
  kSequence,  ///< left, then right
  kChoice,    ///< left or right
  kRepeat,    ///< left, min to max times; kAnyTimes: unbounded
  kRule,      ///< a reference to a rule, possibly recursive
};

struct Expr {
  ExprKind kind = ExprKind::kEmpty;
  uint32_t left = 0;   ///< an expression; for kRule the rule; for kBytes and kChars the count
  uint32_t right = 0;  ///< expression
  uint32_t min = 0;
  uint32_t max = 0;
  const void* data = nullptr;  ///< bytes, or ascending disjoint ranges
};

/// Builds expressions in memory of one call. Ids stay valid. If memory runs out, the id is kNever and failed() is true.
class Grammar {
 public:
  /// Larger grammars are refused as invalid, since the compiled size is bounded, too.
  static constexpr uint32_t kMostExpressions = 1u << 18;
  static constexpr uint32_t kMostRules = 1u << 16;

  /// `stop` also ends all work on this grammar.
  explicit Grammar(Scratch* scratch, const StopCheck& stop = {})
      : scratch_(scratch), work_(scratch, stop) {}

  ExprId empty() { return add({ExprKind::kEmpty}); }
  ExprId never() { return add({ExprKind::kNever}); }
  /// Copied.
  ExprId bytes(const char* data, size_t count);
  ExprId text(const char* text);
  /// A control token, which has no text.
  ExprId token(int32_t id) { return bytes(TokenMark(id).bytes, TokenMark::kBytes); }
  /// One code point in any of the ranges, which may be unsorted and overlap. Surrogates never match. `negated`: any
  /// other code point.
  ExprId chars(const CharRange* ranges, size_t count, bool negated = false);
  ExprId sequence(ExprId left, ExprId right);
  ExprId choice(ExprId left, ExprId right);
  /// min <= max.
  ExprId repeat(ExprId what, uint32_t min, uint32_t max);
  ExprId optional(ExprId what) { return repeat(what, 0, 1); }
  /// A rule must be defined once before the grammar is compiled. A rule at the end of another needs no stack, so states
  /// of an automaton may be rules: "a byte, then the next rule".
  RuleId newRule();
  void define(RuleId rule, ExprId what);
  ExprId rule(RuleId rule);

  void setRoot(RuleId rule) { root_ = rule; }
  RuleId root() const { return root_; }

  /// kNever if its memory ran out.
  const Expr& at(ExprId id) const { return id < count_ ? *exprAt(id) : kMissing; }
  uint32_t count() const { return count_; }
  uint32_t ruleCount() const { return n_rules_; }
  /// The expression of a rule; UINT32_MAX: not defined.
  ExprId definition(RuleId rule) const { return rule < n_rules_ ? *ruleAt(rule) : UINT32_MAX; }
  /// Also true if its work has ended.
  bool failed() const { return failed_ || noMemory() || scratch_->failed() || work_.ended(); }
  bool noMemory() const { return scratch_->noMemory() || work_.noMemory(); }
  Scratch* scratch() const { return scratch_; }
  /// Readers of the grammar count their work here, too.
  Work* work() const { return &work_; }

 private:
  static constexpr uint32_t kPerBlock = 256;
  static constexpr Expr kMissing = {ExprKind::kNever, 0, 0, 0, 0, nullptr};

  ExprId add(const Expr& expr);
  Expr* exprAt(ExprId id) const { return &exprs_[id / kPerBlock][id % kPerBlock]; }
  ExprId* ruleAt(RuleId id) const { return &rules_[id / kPerBlock][id % kPerBlock]; }

  Scratch* const scratch_;
  mutable Work work_;
  Expr** exprs_ = nullptr;  ///< blocks of kPerBlock
  ExprId** rules_ = nullptr;
  uint32_t count_ = 0;
  uint32_t n_rules_ = 0;
  RuleId root_ = 0;
  bool failed_ = false;
};

}  // namespace oriel_internal
