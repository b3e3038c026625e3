// Patterns of JSON schemas (ECMA-262) as automata: the texts in which both an ECMA and a Python engine find the pattern.
#pragma once

#include "grammar/dfa.h"

namespace oriel_internal {

/// Nondeterministic: a state reads a code point, or leads on without.
struct NfaState {
  enum Kind : uint32_t { kSplit, kSet, kAtStart, kAtEnd, kAccept };
  Kind kind = kSplit;
  uint32_t set = 0;  ///< of kSet
  uint32_t out = UINT32_MAX;
  uint32_t other = UINT32_MAX;  ///< of kSplit
};

/// Engines differ in some characters and in `$`.
enum class RegexReading : uint8_t {
  kBoth,    ///< texts that an ECMA engine and a Python engine match
  kEither,  ///< texts that at least one of them matches: to exclude them
};

class Regex {
 public:
  explicit Regex(Work* work = nullptr)
      : work_(work),
        scratch_(work != nullptr ? work->scratch() : nullptr),
        states_(scratch_),
        sets_(scratch_) {}

  /// Null: read. Otherwise what is wrong with it, or is not supported: "backreferences are not supported".
  /// `wrong`: it is no pattern at all. `whole`: it has to match the whole text, as if between ^ and $.
  const char* read(const char* text, size_t bytes, bool whole, bool* wrong,
                   RegexReading reading = RegexReading::kBoth);
  const List<CharSet>& sets() const { return sets_; }
  /// `alphabet`: made of all sets, others' may be in it.
  DfaResult toDfa(const Alphabet& alphabet, uint32_t most_states, Dfa* dfa) const;

 private:
  friend class RegexReader;

  Work* work_;
  Scratch* scratch_;
  List<NfaState> states_;
  List<CharSet> sets_;
  uint32_t start_ = 0;
};

}  // namespace oriel_internal
