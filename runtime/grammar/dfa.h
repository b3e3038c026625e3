// Deterministic automata over code points, the intermediate form of patterns, formats and number bounds. All memory
// belongs to the work until it begins anew. If the work ends, results are kTooLarge.
#pragma once

#include <cstring>

#include "base/hash.h"
#include "grammar/expression.h"

namespace oriel_internal {

/// Code points with identical edges share a symbol.
struct Alphabet {
  const uint32_t* first = nullptr;   ///< first code point of each interval; ascending from 0
  const uint16_t* symbol = nullptr;  ///< of each interval
  uint32_t n_intervals = 0;
  uint32_t n_symbols = 0;

  uint16_t symbolOf(uint32_t code_point) const;
};

/// Sorted, disjoint ranges.
struct CharSet {
  const CharRange* ranges = nullptr;
  uint32_t count = 0;
};

/// The coarsest alphabet in which every set is a set of symbols. Surrogates alone have symbol 0. Null `first`: out of
/// memory, or more than kMostSymbols.
constexpr uint32_t kMostSymbols = 4096;
Alphabet makeAlphabet(const CharSet* sets, uint32_t count, Work* work);

struct Dfa {
  static constexpr uint16_t kDead = UINT16_MAX;
  static constexpr uint32_t kMostStates = 32768;

  Alphabet alphabet;
  uint32_t n_states = 0;  ///< state 0 is the start; 0 states: no text is accepted
  uint16_t* next = nullptr;
  uint8_t* accepts = nullptr;

  uint16_t step(uint32_t state, uint32_t symbol) const {
    return next[static_cast<size_t>(state) * alphabet.n_symbols + symbol];
  }
};

/// Cost of looking up one state while exploring.
constexpr uint32_t kStepsOfState = 16;
constexpr uint32_t kStepsOfEdge = 12;

enum class DfaResult : uint8_t { kDone, kTooLarge, kNoMemory };

/// Explores states from `start`. `step(state, symbol, &next)` returns false for a missing next state. `State` must have
/// no padding.
template <typename State, typename Step, typename Accepts>
DfaResult exploreDfa(const State& start, const Alphabet& alphabet, uint32_t most_states, Step step,
                     Accepts accepts, Work* work, Dfa* dfa);

/// Removes dead states, then merges equivalent ones (if that is affordable).
void reduceDfa(Dfa* dfa, Work* work);
/// Texts that both accept; they share an alphabet.
DfaResult intersectDfa(const Dfa& a, const Dfa& b, uint32_t most_states, Work* work, Dfa* out);
/// Texts that it does not accept.
DfaResult complementDfa(const Dfa& dfa, uint32_t most_states, Work* work, Dfa* out);
/// True if some text is accepted by both. Their alphabets may differ. Also true if the work ends.
bool mayMeet(const Dfa& a, const Dfa& b, Work* work);
/// Precision of length counting. Above `exact` a count may be rounded up by less than `unit` when paths of different
/// length reach the same state.
struct LengthLimits {
  uint32_t min = 0;
  uint32_t max = UINT32_MAX;
  uint32_t exact = UINT32_MAX;  ///< at least `min`
  uint32_t unit = 1;            ///< a power of two
};
/// Texts with `min` to `max` code points: exactly up to `exact`; longer ones if their rounded count fits.
DfaResult limitDfa(const Dfa& dfa, const LengthLimits& limits, uint32_t most_states, Work* work,
                   Dfa* out);
/// States with an edge to themselves.
uint32_t countLoops(const Dfa& dfa, Work* work);
/// Code points of the shortest text. The automaton must be reduced and not empty.
uint32_t shortestText(const Dfa& dfa, Work* work);
/// Code points of the longest text; UINT32_MAX: unbounded, or out of memory.
uint32_t longestText(const Dfa& dfa, Work* work);
/// UTF-8.
bool dfaAccepts(const Dfa& dfa, const char* text, size_t bytes);

/// Writes a rule for each state. As a JSON string, code points are escaped where required, and the closing quote ends
/// the text.
enum class DfaSpelling : uint8_t { kPlain, kJsonString };
ExprId dfaExpression(const Dfa& dfa, DfaSpelling spelling, Grammar* grammar);

template <typename State, typename Step, typename Accepts>
DfaResult exploreDfa(const State& start, const Alphabet& alphabet, uint32_t most_states, Step step,
                     Accepts accepts, Work* work, Dfa* dfa) {
  Scratch* const scratch = work->scratch();
  const uint32_t n_slots = 2 * std::min(most_states, Dfa::kMostStates);
  uint32_t slot_mask = 1;
  while (slot_mask < n_slots) {
    slot_mask *= 2;
  }
  uint16_t* const slots = scratch->take<uint16_t>(slot_mask);  // 0: free
  List<State> states(scratch);
  List<uint16_t> next(scratch);
  if (slots == nullptr) {
    return DfaResult::kNoMemory;
  }
  --slot_mask;
  const auto find = [&](const State& state) {
    uint32_t slot = static_cast<uint32_t>(hashBytes(&state, sizeof(state))) & slot_mask;
    while (slots[slot] != 0 && std::memcmp(&states[slots[slot] - 1u], &state, sizeof(state)) != 0) {
      slot = (slot + 1) & slot_mask;
    }
    if (slots[slot] == 0 && states.count() < most_states && states.push(state)) {
      slots[slot] = static_cast<uint16_t>(states.count());
    }
    return static_cast<uint16_t>(slots[slot] - 1u);  // kDead without room
  };
  find(start);
  for (uint32_t at = 0; at < states.count(); ++at) {
    if (!work->spend(kStepsOfState + uint64_t{kStepsOfEdge} * alphabet.n_symbols)) {
      return DfaResult::kTooLarge;
    }
    for (uint32_t symbol = 0; symbol < alphabet.n_symbols; ++symbol) {
      State to{};
      const State from = states[at];
      const uint16_t target = step(from, symbol, &to) ? find(to) : Dfa::kDead;
      if (target == Dfa::kDead && states.count() >= most_states) {
        return DfaResult::kTooLarge;
      }
      if (!next.push(target)) {
        return DfaResult::kNoMemory;
      }
    }
  }
  dfa->alphabet = alphabet;
  dfa->n_states = states.count();
  dfa->next = next.begin();
  dfa->accepts = scratch->take<uint8_t>(states.count());
  if (dfa->accepts == nullptr) {
    return DfaResult::kNoMemory;
  }
  for (uint32_t i = 0; i < states.count(); ++i) {
    dfa->accepts[i] = accepts(states[i]) ? 1 : 0;
  }
  reduceDfa(dfa, work);
  if (work->ended()) {
    return DfaResult::kTooLarge;
  }
  return scratch->failed() ? DfaResult::kNoMemory : DfaResult::kDone;
}

}  // namespace oriel_internal
