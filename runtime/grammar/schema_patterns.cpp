#include "grammar/schema_patterns.h"

#include "grammar/regex.h"

namespace oriel_internal {
namespace {

// Divisor of the cache's size: one large automaton must not fill it.
constexpr size_t kLargestPart = 4;
constexpr size_t kBytesAStep = 4;

}  // namespace

uint64_t SchemaPatterns::hashOf(const StringFacts& facts, Of of) {
  uint64_t hash = 1 + static_cast<uint64_t>(of);
  for (uint32_t i = 0; i < facts.n_patterns; ++i) {
    hash = hashBytes(facts.patterns[i].data, facts.patterns[i].bytes, hash);
  }
  for (uint32_t i = 0; i < facts.n_formats; ++i) {
    hash = ~hashBytes(facts.formats[i].data, facts.formats[i].bytes, hash);
  }
  return hash;
}

bool SchemaPatterns::isSame(const Known& known, const StringFacts& facts) {
  return known.n_patterns == facts.n_patterns && known.n_formats == facts.n_formats &&
         std::equal(known.texts, known.texts + known.n_patterns, facts.patterns) &&
         std::equal(known.texts + known.n_patterns,
                    known.texts + known.n_patterns + known.n_formats, facts.formats);
}

const SchemaPatterns::Known* SchemaPatterns::find(const StringFacts& facts, Of of, uint64_t hash) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < facts.n_patterns; ++i) {
    bytes += facts.patterns[i].bytes;
  }
  (void)work_->spend(16 + bytes / kBytesAStep);
  if (heads_ == nullptr) {
    heads_ = memory_.take<uint32_t>(kHashes);
  }
  for (uint32_t at = heads_ != nullptr ? heads_[hash % kHashes] : 0; at != 0;
       at = known_[at - 1].same_hash) {
    (void)work_->spend(4);
    const Known& known = known_[at - 1];
    if (known.hash == hash && known.of == of && isSame(known, facts)) {
      (void)work_->spend(bytes / kBytesAStep);
      return &known;
    }
  }
  return nullptr;
}

// Null: out of memory.
const SchemaPatterns::Known* SchemaPatterns::keep(const StringFacts& facts, Known known) {
  if (heads_ == nullptr || memory_.failed() || work_->ended()) {
    return nullptr;
  }
  const uint32_t n = facts.n_patterns + facts.n_formats;
  JsonText* const texts = memory_.take<JsonText>(n);
  if (texts == nullptr) {
    return nullptr;
  }
  std::copy_n(facts.patterns, facts.n_patterns, texts);
  std::copy_n(facts.formats, facts.n_formats, texts + facts.n_patterns);
  known.texts = texts;
  known.n_patterns = facts.n_patterns;
  known.n_formats = facts.n_formats;
  known.same_hash = heads_[known.hash % kHashes];
  if (!known_.push(known)) {
    return nullptr;
  }
  heads_[known.hash % kHashes] = known_.count();
  return &known_.last();
}

const char* SchemaPatterns::error(const JsonText& pattern, bool* wrong) {
  StringFacts facts;
  facts.patterns[facts.n_patterns++] = pattern;
  const uint64_t hash = hashOf(facts, Of::kCheck);
  if (const Known* const known = find(facts, Of::kCheck, hash); known != nullptr) {
    *wrong = known->wrong;
    return known->error;
  }
  Known known = {};
  known.hash = hash;
  known.of = Of::kCheck;
  (void)work_->begin();
  Regex regex(work_);
  known.error = regex.read(pattern.data, pattern.bytes, false, &known.wrong);
  (void)keep(facts, known);
  *wrong = known.wrong;
  return known.error;
}

// Copies to lasting memory.
bool SchemaPatterns::copyDfa(Dfa* dfa) {
  const uint32_t n_intervals = dfa->alphabet.n_intervals;
  const size_t n_edges = size_t{dfa->n_states} * dfa->alphabet.n_symbols;
  const size_t bytes = n_edges * sizeof(uint16_t) + dfa->n_states +
                       n_intervals * (sizeof(uint32_t) + sizeof(uint16_t));
  if (bytes > memory_.leftBytes() / kLargestPart || !work_->spend(bytes / kBytesAStep)) {
    return false;
  }
  uint32_t* const first = memory_.take<uint32_t>(n_intervals);
  uint16_t* const symbol = memory_.take<uint16_t>(n_intervals);
  uint16_t* const next = memory_.take<uint16_t>(n_edges);
  uint8_t* const accepts = memory_.take<uint8_t>(dfa->n_states);
  if (memory_.failed()) {
    return false;
  }
  std::copy_n(dfa->alphabet.first, n_intervals, first);
  std::copy_n(dfa->alphabet.symbol, n_intervals, symbol);
  std::copy_n(dfa->next, n_edges, next);
  std::copy_n(dfa->accepts, dfa->n_states, accepts);
  dfa->alphabet.first = first;
  dfa->alphabet.symbol = symbol;
  dfa->next = next;
  dfa->accepts = accepts;
  return true;
}

// False: too large. The result is in lasting memory, or in the work's memory until it begins anew.
bool SchemaPatterns::dfaOf(const StringFacts& facts, RegexReading reading, Dfa* dfa,
                           uint32_t* number) {
  const Of of = reading == RegexReading::kBoth ? Of::kBoth : Of::kEither;
  const uint64_t hash = hashOf(facts, of);
  if (const Known* const known = find(facts, of, hash); known != nullptr) {
    *dfa = known->dfa;
    *number = static_cast<uint32_t>(known - known_.begin()) + 1;
    return !known->too_large;
  }
  Known known = {};
  known.hash = hash;
  known.of = of;
  known.too_large = !stringsDfa(facts, reading, work_, &known.dfa);
  const bool stays = known.too_large || known.dfa.n_states == 0 || copyDfa(&known.dfa);
  *number = stays && keep(facts, known) != nullptr ? known_.count() : 0;
  *dfa = known.dfa;
  return !known.too_large;
}

bool SchemaPatterns::accepts(const JsonText& pattern, bool is_format, const JsonText& text,
                             bool* failed, RegexReading reading) {
  StringFacts facts;
  if (is_format) {
    facts.formats[facts.n_formats++] = pattern;
  } else {
    facts.patterns[facts.n_patterns++] = pattern;
  }
  (void)work_->begin();
  Dfa dfa;
  uint32_t number = 0;
  *failed = !dfaOf(facts, reading, &dfa, &number) || !work_->spend(16 * uint64_t{text.bytes});
  return !*failed && dfaAccepts(dfa, text.data, text.bytes);
}

bool SchemaPatterns::mayMeet(const StringFacts& a, const StringFacts& b) {
  if (a.min_length > b.max_length || b.min_length > a.max_length) {
    return false;
  }
  const bool a_is_free = a.n_patterns + a.n_formats == 0;
  const bool b_is_free = b.n_patterns + b.n_formats == 0;
  (void)work_->begin();
  Dfa dfa_a;
  Dfa dfa_b;
  uint32_t number_a = 0;
  uint32_t number_b = 0;
  if ((!a_is_free && !dfaOf(a, RegexReading::kBoth, &dfa_a, &number_a)) ||
      (!b_is_free && !dfaOf(b, RegexReading::kBoth, &dfa_b, &number_b))) {
    return true;
  }
  if (a_is_free || b_is_free) {
    return (a_is_free || dfa_a.n_states != 0) && (b_is_free || dfa_b.n_states != 0);
  }
  return mayMeet(dfa_a, number_a, dfa_b, number_b);
}

bool SchemaPatterns::mayMeetEither(const JsonText& a, const JsonText& b) {
  StringFacts facts[2];
  facts[0].patterns[facts[0].n_patterns++] = a;
  facts[1].patterns[facts[1].n_patterns++] = b;
  (void)work_->begin();
  Dfa dfa_a;
  Dfa dfa_b;
  uint32_t number_a = 0;
  uint32_t number_b = 0;
  if (!dfaOf(facts[0], RegexReading::kEither, &dfa_a, &number_a) ||
      !dfaOf(facts[1], RegexReading::kEither, &dfa_b, &number_b)) {
    return true;
  }
  return mayMeet(dfa_a, number_a, dfa_b, number_b);
}

bool SchemaPatterns::mayMeet(const Dfa& dfa_a, uint32_t number_a, const Dfa& dfa_b,
                             uint32_t number_b) {
  if (number_a == 0 || number_b == 0) {
    return oriel_internal::mayMeet(dfa_a, dfa_b, work_);
  }
  pairs_ = pairs_ != nullptr ? pairs_ : memory_.take<uint64_t>(kMostPairs);
  const uint64_t key =
      uint64_t{std::min(number_a, number_b)} << 32 | uint64_t{std::max(number_a, number_b)} << 1;
  const uint64_t place = (key * 0x9e3779b97f4a7c15ull) >> 32 & (kMostPairs - 1);
  if (pairs_ != nullptr && (pairs_[place] & ~uint64_t{1}) == key) {
    return (pairs_[place] & 1) != 0;
  }
  const bool meet = oriel_internal::mayMeet(dfa_a, dfa_b, work_);
  if (pairs_ != nullptr && !work_->ended()) {
    pairs_[place] = key | (meet ? 1 : 0);
  }
  return meet;
}

}  // namespace oriel_internal
