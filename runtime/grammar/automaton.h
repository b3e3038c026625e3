// A grammar as an automaton over bytes with a stack: states, edges, and which bytes it cannot tell apart.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"
#include "grammar/expression.h"

namespace oriel_internal {

/// States to come back to that may be open at a time: how deep texts may nest. Deeper ones are forbidden in time for
/// what is open to be closed.
constexpr uint32_t kMostHeight = 255;

/// Read only; lives in memory of its owner.
struct Automaton {
  static constexpr uint16_t kFinal = 0;
  static constexpr uint32_t kMostStates = UINT16_MAX;

  struct State {
    uint32_t edges = 0;    ///< the first one: those that take a byte, then those that take nothing
    uint16_t n_bytes = 0;  ///< edges that take a byte
    uint8_t need = 0;      ///< least height of the stack, above its own, from which a way ends
  };
  struct Edge {
    uint16_t target = 0;
    /// Of a byte: the range, first | last << 8. Else the state that is entered once what begins at the target has
    /// ended; kFinal: none.
    uint16_t with = 0;

    bool takes(uint8_t byte) const { return byte >= (with & 0xFF) && byte <= with >> 8; }
  };

  const State* states = nullptr;  ///< one more than there are: its edges are the end
  const Edge* edges = nullptr;
  uint32_t n_states = 0;
  uint32_t root = 0;
  uint32_t n_classes = 0;
  uint8_t class_of[256] = {};  ///< bytes of a class are on the same edges
  uint8_t byte_of[256] = {};   ///< one byte of each class
  bool takes[256] = {};        ///< bytes that are on any edge
  size_t bytes = 0;            ///< of memory that it takes
};

/// Compiles `grammar` into at most `capacity` bytes of `memory`. States from which no text can be completed are left
/// out. Left recursion, a rule without definition and a grammar that no text fits are ORIEL_ERROR_ARGUMENT, one that
/// is too large ORIEL_ERROR_UNSUPPORTED. Works in the grammar's scratch memory.
Status compileAutomaton(const Grammar& grammar, const Log& log, void* memory, size_t capacity,
                        Automaton* automaton);

}  // namespace oriel_internal
