// A grammar compiled to a pushdown automaton over bytes: states, edges and byte classes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"
#include "grammar/expression.h"

namespace oriel_internal {

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
