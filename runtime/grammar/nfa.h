// A grammar's expressions as states and edges, as they are written down; automaton.h makes what is run of them.
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
  /// False, and nothing changes, where there is no memory or where there are as many as may be.
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

/// States with edges that take a byte, take nothing, or go through a routine first. A routine is a part that is entered
/// from several places: it begins at a state of its own and ends in kFinal, where it goes on behind the place that
/// called it.
class Nfa {
 public:
  static constexpr uint32_t kFinal = 0;
  static constexpr uint32_t kNowhere = 1;  ///< no way on
  static constexpr uint32_t kNone = UINT32_MAX;
  /// Before what leads nowhere is taken out. More than the memory of an automaton can hold.
  static constexpr uint32_t kMostStates = 1u << 17;
  static constexpr uint32_t kMostEdges = 1u << 18;

  enum class EdgeKind : uint8_t { kByte, kFree, kCall };
  struct Edge {
    uint32_t target = 0;  ///< a state; of a call a routine
    uint32_t after = 0;   ///< of a call: the state behind it
    uint32_t next = kNone;
    EdgeKind kind = EdgeKind::kByte;
    uint8_t first = 0;
    uint8_t last = 0;
  };
  struct State {
    uint32_t edges = kNone;  ///< the first one; the others follow by Edge::next
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
  Blocks<Routine> routines;  ///< the first one is the grammar's root
};

/// A rule without definition is ORIEL_ERROR_ARGUMENT, a grammar that becomes too large ORIEL_ERROR_UNSUPPORTED.
Status buildNfa(const Grammar& grammar, const Log& log, Nfa* nfa);

/// What is logged where a grammar does not fit.
Status failTooLarge(const Log& log);
/// Where the grammar's work was stopped.
Status failStopped(const Log& log);

}  // namespace oriel_internal
