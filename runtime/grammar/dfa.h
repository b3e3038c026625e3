// Deterministic automata over code points: what patterns, formats and bounds of numbers are turned into before they
// become expressions. All memory is that of the work, until it begins anew; where it ends, what is made is kTooLarge.
#pragma once

#include <cstring>

#include "base/hash.h"
#include "grammar/expression.h"
#include "grammar/list.h"

namespace oriel_internal {

/// Code points that nothing tells apart share a symbol.
struct Alphabet {
  const uint32_t* first = nullptr;   ///< code point that an interval begins with; ascending from 0
  const uint16_t* symbol = nullptr;  ///< of an interval
  uint32_t n_intervals = 0;
  uint32_t n_symbols = 0;

  uint16_t symbolOf(uint32_t code_point) const;
};

/// Sorted ranges, apart from each other.
struct CharSet {
  const CharRange* ranges = nullptr;
  uint32_t count = 0;
};

/// The coarsest alphabet in which every set is a set of symbols. Surrogates have symbol 0, and it to themselves. Null
/// `first`: no memory, or more than kMostSymbols.
constexpr uint32_t kMostSymbols = 4096;
Alphabet makeAlphabet(const CharSet* sets, uint32_t count, Work* work);

struct Dfa {
  static constexpr uint16_t kDead = UINT16_MAX;
  static constexpr uint32_t kMostStates = 32768;

  Alphabet alphabet;
  uint32_t n_states = 0;  ///< the first is where it starts; none: no text is accepted
  uint16_t* next = nullptr;
  uint8_t* accepts = nullptr;

  uint16_t step(uint32_t state, uint32_t symbol) const {
    return next[static_cast<size_t>(state) * alphabet.n_symbols + symbol];
  }
};

/// Of exploring: what is looked up for each.
constexpr uint32_t kStepsOfState = 16;
constexpr uint32_t kStepsOfEdge = 12;

enum class DfaResult : uint8_t { kDone, kTooLarge, kNoMemory };

/// Explores states from `start`. `step(state, symbol, &next)`: false when nothing follows. `State` has no padding.
template <typename State, typename Step, typename Accepts>
DfaResult exploreDfa(const State& start, const Alphabet& alphabet, uint32_t most_states, Step step,
                     Accepts accepts, Work* work, Dfa* dfa);

/// Takes out states that lead nowhere, then joins those that nothing tells apart (where that is not too much work).
void reduceDfa(Dfa* dfa, Work* work);
/// What both accept; they share an alphabet.
DfaResult intersectDfa(const Dfa& a, const Dfa& b, uint32_t most_states, Work* work, Dfa* out);
/// All other texts.
DfaResult complementDfa(const Dfa& dfa, uint32_t most_states, Work* work, Dfa* out);
/// Whether there is a text that both accept, whose alphabets may differ. True also where the work ends.
bool mayMeet(const Dfa& a, const Dfa& b, Work* work);
/// How lengths are counted. Above `exact` a count may be too large: it is rounded up by less than `unit` wherever a text
/// is shorter than another one on the way to the same state.
struct LengthLimits {
  uint32_t min = 0;
  uint32_t max = UINT32_MAX;
  uint32_t exact = UINT32_MAX;  ///< at least `min`
  uint32_t unit = 1;            ///< a power of two
};
/// Texts with `min` to `max` code points: all of them up to `exact`, and longer ones whose rounded count fits.
DfaResult limitDfa(const Dfa& dfa, const LengthLimits& limits, uint32_t most_states, Work* work,
                   Dfa* out);
/// States with an edge to themselves.
uint32_t countLoops(const Dfa& dfa, Work* work);
/// Code points of the shortest text; of a reduced one that is not empty.
uint32_t shortestText(const Dfa& dfa, Work* work);
/// Of the longest; UINT32_MAX: there is none, or no memory to find it.
uint32_t longestText(const Dfa& dfa, Work* work);
/// UTF-8.
bool dfaAccepts(const Dfa& dfa, const char* text, size_t bytes);

/// A rule for each state. As JSON string: code points are escaped where they must be, and the closing quote stands
/// where a text ends.
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
    return static_cast<uint16_t>(slots[slot] - 1u);  // kDead when there was no room
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
