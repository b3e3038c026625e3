// JSON schema patterns (ECMA-262) as automata. A text matches if both an ECMA and a Python engine find the pattern in
// it.
#pragma once

#include "grammar/dfa.h"

namespace oriel_internal {

/// Nondeterministic: a state reads a code point, or leads on without reading.
struct NfaState {
  enum Kind : uint32_t { kSplit, kSet, kAtStart, kAtEnd, kAccept };
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

}  // namespace oriel_internal
