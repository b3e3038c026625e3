// Automata: states of grammars and patterns, and the compiled pushdown automaton.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"
#include "grammar/dfa.h"
#include "grammar/expression.h"

namespace oriel_internal {

// A grammar's expressions as states and edges, unoptimised.

/// A list that grows in memory of one call.
template <typename T>
class Blocks {
 public:
  Blocks(Scratch* scratch, uint32_t most) : scratch_(scratch), most_(most) {
    blocks_ = scratch->take<T*>((most + kPerBlock - 1) / kPerBlock);
  }
  /// False, without a change, if memory or the limit is exhausted.
  bool push(const T& value) {
    if (blocks_ == nullptr || count_ == most_) {
      return false;
    }
    T*& block = blocks_[count_ / kPerBlock];
    if (block == nullptr) {
      block = scratch_->take<T>(kPerBlock);
      if (block == nullptr) {
        return false;
      }
    }
    block[count_++ % kPerBlock] = value;
    return true;
  }
  T pop() { return (*this)[--count_]; }
  void cut(uint32_t count) { count_ = count; }
  T& operator[](uint32_t i) { return blocks_[i / kPerBlock][i % kPerBlock]; }
  const T& operator[](uint32_t i) const { return blocks_[i / kPerBlock][i % kPerBlock]; }
  uint32_t count() const { return count_; }

 private:
  static constexpr uint32_t kPerBlock = 512;

  Scratch* scratch_;
  T** blocks_ = nullptr;
  uint32_t count_ = 0;
  uint32_t most_;
};

/// States with edges that take a byte, take nothing, or first go through a routine. A routine is a part with several
/// callers: it begins at its own state and ends in kFinal, then continues after the caller's edge.
class Nfa {
 public:
  static constexpr uint32_t kFinal = 0;
  static constexpr uint32_t kNowhere = 1;  ///< no way on
  static constexpr uint32_t kNone = UINT32_MAX;
  /// Before dead states are removed. More than an automaton's memory can hold.
  static constexpr uint32_t kMostStates = 1u << 17;
  static constexpr uint32_t kMostEdges = 1u << 18;

  enum class EdgeKind : uint8_t { kByte, kFree, kCall };
  struct Edge {
    uint32_t target = 0;  ///< a state; for a call a routine
    uint32_t after = 0;   ///< for a call: the state after it
    uint32_t next = kNone;
    EdgeKind kind = EdgeKind::kByte;
    uint8_t first = 0;
    uint8_t last = 0;
  };
  struct State {
    uint32_t edges = kNone;  ///< the first; others follow by Edge::next
    uint32_t last_edge = kNone;
    uint32_t same_hash = kNone;
  };
  struct Routine {
    ExprId what = 0;
    uint32_t start = kNone;
  };

  explicit Nfa(Scratch* scratch)
      : states(scratch, kMostStates), edges(scratch, kMostEdges), routines(scratch, kMostStates) {}

  Blocks<State> states;
  Blocks<Edge> edges;
  Blocks<Routine> routines;  ///< the first is the grammar's root
};

/// ORIEL_ERROR_ARGUMENT for an undefined rule, ORIEL_ERROR_UNSUPPORTED if the grammar becomes too large.
Status buildNfa(const Grammar& grammar, const Log& log, Nfa* nfa);

/// Logs that a grammar does not fit.
Status failTooLarge(const Log& log);

// JSON schema patterns (ECMA-262) as automata. A text matches if both an ECMA and a Python engine find the pattern in
// it.

/// Nondeterministic: a state reads a code point, or leads on without reading.
struct NfaState {
  enum Kind : uint32_t { kSplit, kSet, kTextStart, kTextEnd, kAccept };
  Kind kind = kSplit;
  uint32_t set = 0;  ///< of kSet
  uint32_t out = UINT32_MAX;
  uint32_t other = UINT32_MAX;  ///< of kSplit
};

/// Engines differ in some characters and in `$`.
enum class RegexReading : uint8_t {
  kBoth,    ///< texts that match in both an ECMA and a Python engine
  kEither,  ///< texts that match in at least one: used to exclude
};

class Regex {
 public:
  explicit Regex(Work* work = nullptr)
      : work_(work),
        scratch_(work != nullptr ? work->scratch() : nullptr),
        states_(scratch_),
        sets_(scratch_) {}

  /// Null on success. Otherwise the fault or the unsupported feature: "backreferences are not supported". `wrong`: it is
  /// not a valid pattern. `whole`: it must match the whole text, as if between ^ and $.
  const char* read(const char* text, size_t bytes, bool whole, bool* wrong,
                   RegexReading reading = RegexReading::kBoth);
  const List<CharSet>& sets() const { return sets_; }
  /// `alphabet` must be made from all sets; it may include others.
  DfaResult toDfa(const Alphabet& alphabet, uint32_t most_states, Dfa* dfa) const;

 private:
  friend class RegexReader;

  Work* work_;
  Scratch* scratch_;
  List<NfaState> states_;
  List<CharSet> sets_;
  uint32_t start_ = 0;
};

// A grammar compiled to a pushdown automaton over bytes: states, edges and byte classes.

/// Most return states on the stack: the nesting limit of texts. Deeper nesting is forbidden early enough to close all
/// open parts.
constexpr uint32_t kMostHeight = 255;

/// Read only; the owner provides the memory.
struct Automaton {
  static constexpr uint16_t kFinal = 0;
  static constexpr uint32_t kMostStates = UINT16_MAX;

  struct State {
    uint32_t edges = 0;    ///< index of the first edge: byte edges first, then empty ones
    uint16_t n_bytes = 0;  ///< number of byte edges
    uint8_t need = 0;      ///< smallest stack height above its own at which a path ends
  };
  struct Edge {
    uint16_t target = 0;
    /// For a byte edge: the range, first | last << 8. For an empty edge: the return state after the target's routine
    /// ends; kFinal: none.
    uint16_t with = 0;

    bool takes(uint8_t byte) const { return byte >= (with & 0xFF) && byte <= with >> 8; }
  };

  const State* states = nullptr;  ///< one more than the count: its edges are the end
  const Edge* edges = nullptr;
  uint32_t n_states = 0;
  uint32_t root = 0;
  uint32_t n_classes = 0;
  uint8_t class_of[256] = {};  ///< bytes of a class share all edges
  uint8_t byte_of[256] = {};   ///< a representative byte for each class
  bool takes[256] = {};        ///< bytes on any edge
  size_t bytes = 0;            ///< memory size
};

/// Compiles `grammar` into at most `capacity` bytes of `memory`. Omits states from which no text can be completed.
/// ORIEL_ERROR_ARGUMENT for left recursion, an undefined rule or a grammar that matches no text; ORIEL_ERROR_UNSUPPORTED
/// if it is too large. Works in the grammar's scratch memory.
Status compileAutomaton(const Grammar& grammar, const Log& log, void* memory, size_t capacity,
                        Automaton* automaton);

}  // namespace oriel_internal
