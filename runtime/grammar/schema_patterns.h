// What a schema's patterns and formats are to each other and to texts: each is made an automaton once.
#pragma once

#include "grammar/regex.h"
#include "grammar/schema_strings.h"

namespace oriel_internal {

class SchemaPatterns {
 public:
  explicit SchemaPatterns(Grammar* grammar)
      : work_(grammar->work()), memory_(grammar->scratch(), kMostKeptBytes), known_(&memory_) {}

  /// Null, or what is wrong with a pattern. `wrong`: it is none.
  const char* error(const JsonText& pattern, bool* wrong);
  /// `failed`: its automaton is too large. A format as far as it is exact.
  bool accepts(const JsonText& pattern, bool is_format, const JsonText& text, bool* failed,
               RegexReading reading = RegexReading::kBoth);
  /// Whether a text may satisfy both. True also where that is too much work.
  bool mayMeet(const StringFacts& a, const StringFacts& b);
  /// The same of two patterns, each as any engine reads it.
  bool mayMeetEither(const JsonText& a, const JsonText& b);
  bool noMemory() const { return memory_.noMemory(); }

 private:
  static constexpr size_t kMostKeptBytes = 16u << 20;
  static constexpr uint32_t kHashes = 256;
  static constexpr uint32_t kMostPairs = 1u << 14;

  /// Of a pattern whether it can be read, of patterns and formats that hold at once their automaton.
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
  /// `number`: of known_, plus 1; 0: it is not kept.
  bool dfaOf(const StringFacts& facts, RegexReading reading, Dfa* dfa, uint32_t* number);
  bool mayMeet(const Dfa& a, uint32_t number_a, const Dfa& b, uint32_t number_b);

  Work* const work_;
  Scratch memory_;
  List<Known> known_;
  uint32_t* heads_ = nullptr;  ///< of known_, plus 1
  /// Of pairs whether they meet, each in one place: numbers as of dfaOf(), the smaller one first; lowest bit: they meet.
  uint64_t* pairs_ = nullptr;
};

}  // namespace oriel_internal
