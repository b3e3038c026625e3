// A grammar's expressions as states and edges, unoptimised. automaton.h compiles them.
#pragma once

#include <cstdint>

#include "base/log.h"
#include "grammar/expression.h"

namespace oriel_internal {

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

}  // namespace oriel_internal
