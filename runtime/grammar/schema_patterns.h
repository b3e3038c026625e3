// Compares a schema's patterns and formats with each other and with texts. Each is compiled to an automaton once.
#pragma once

#include "grammar/regex.h"
#include "grammar/schema_strings.h"

namespace oriel_internal {

class SchemaPatterns {
 public:
  explicit SchemaPatterns(Grammar* grammar)
      : work_(grammar->work()), memory_(grammar->scratch(), kMostKeptBytes), known_(&memory_) {}

  /// Null, or the fault of a pattern. `wrong`: it is not a valid pattern.
  const char* error(const JsonText& pattern, bool* wrong);
  /// `failed`: its automaton is too large. Formats are checked only if their pattern is exact.
  bool accepts(const JsonText& pattern, bool is_format, const JsonText& text, bool* failed,
               RegexReading reading = RegexReading::kBoth);
  /// True if some text may satisfy both, or if deciding is too expensive.
  bool mayMeet(const StringFacts& a, const StringFacts& b);
  /// The same for two patterns, each as either engine may read it.
  bool mayMeetEither(const JsonText& a, const JsonText& b);
  bool noMemory() const { return memory_.noMemory(); }

 private:
  static constexpr size_t kMostKeptBytes = 16u << 20;
  static constexpr uint32_t kHashes = 256;
  static constexpr uint32_t kMostPairs = 1u << 14;

  /// kCheck: whether a pattern is readable. kBoth and kEither: the automaton of combined patterns and formats.
  enum class Of : uint8_t { kCheck, kBoth, kEither };
  struct Known {
    uint64_t hash;
    uint32_t same_hash;
    Of of;
    bool wrong;
    bool too_large;
    uint32_t n_patterns;
    uint32_t n_formats;
    const JsonText* texts;
    const char* error;
    Dfa dfa;
  };

  static uint64_t hashOf(const StringFacts& facts, Of of);
  static bool isSame(const Known& known, const StringFacts& facts);
  const Known* find(const StringFacts& facts, Of of, uint64_t hash);
  const Known* keep(const StringFacts& facts, Known known);
  bool copyDfa(Dfa* dfa);
  /// `number`: in known_, plus 1; 0: not cached.
  bool dfaOf(const StringFacts& facts, RegexReading reading, Dfa* dfa, uint32_t* number);
  bool mayMeet(const Dfa& a, uint32_t number_a, const Dfa& b, uint32_t number_b);

  Work* const work_;
  Scratch memory_;
  List<Known> known_;
  uint32_t* heads_ = nullptr;  ///< in known_, plus 1
  /// Cached results of mayMeet(), one slot per hash: numbers from dfaOf(), the smaller one first; lowest bit: the
  /// result.
  uint64_t* pairs_ = nullptr;
};

}  // namespace oriel_internal
