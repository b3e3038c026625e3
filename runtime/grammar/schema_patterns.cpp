#include "grammar/schema_patterns.h"

#include <iterator>

#include "grammar/automaton.h"
#include "text/unicode.h"

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

namespace {

constexpr uint32_t kMostDepthOfTexts = 60;
constexpr uint64_t kStepsOfExpression = 32;  // to visit it and its parts

constexpr CharRange kRaw[] = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF}};

bool isBefore(const JsonText& a, const JsonText& b) {
  const int order = std::memcmp(a.data, b.data, std::min(a.bytes, b.bytes));
  return order != 0 ? order < 0 : a.bytes < b.bytes;
}

// Sorted texts with a common prefix, from byte `at` on.
ExprId textsFrom(const JsonText* texts, uint32_t count, size_t at, uint32_t depth, Grammar* g) {
  const JsonText& first = texts[0];
  const JsonText& last = texts[count - 1];
  if (count == 1 || depth > kMostDepthOfTexts) {
    List<ExprId> all(g->scratch());
    for (uint32_t i = 0; i < count; ++i) {
      all.push(g->bytes(texts[i].data + at, texts[i].bytes - at));
    }
    return choiceOf(all.begin(), all.count(), g);
  }
  size_t alike = at;
  while (alike < first.bytes && alike < last.bytes && first.data[alike] == last.data[alike]) {
    ++alike;
  }
  List<ExprId> all(g->scratch());
  uint32_t i = 0;
  for (; i < count && texts[i].bytes == alike; ++i) {
    if (i == 0) {
      all.push(g->empty());
    }
  }
  while (i < count) {
    uint32_t end = i + 1;
    while (end < count && texts[end].data[alike] == texts[i].data[alike]) {
      ++end;
    }
    all.push(textsFrom(texts + i, end - i, alike, depth + 1, g));
    i = end;
  }
  const ExprId rest = choiceOf(all.begin(), all.count(), g);
  return alike == at ? rest : g->sequence(g->bytes(first.data + at, alike - at), rest);
}

struct Written {
  char* to;
  size_t bytes;
};

// A trie of the names that a key must not equal, from byte `at` on.
struct KeyNode {
  uint32_t first;
  uint32_t count;
  size_t at;
  RuleId rule;
};

bool isRaw(const JsonText& name) {
  return std::none_of(name.data, name.data + name.bytes, [](char c) {
    return static_cast<uint8_t>(c) < 0x20 || c == '"' || c == '\\';
  });
}

}  // namespace

ExprId choiceOf(const ExprId* options, uint32_t count, Grammar* grammar) {
  if (count == 0) {
    return grammar->never();
  }
  if (count == 1) {
    return options[0];
  }
  const uint32_t half = count / 2;
  return grammar->choice(choiceOf(options, half, grammar),
                         choiceOf(options + half, count - half, grammar));
}

JsonText jsonOf(const JsonValue& value, Scratch* scratch) {
  Written counted = {nullptr, 0};
  const JsonSink count = {
      [](const char*, size_t bytes, void* user) { static_cast<Written*>(user)->bytes += bytes; },
      &counted};
  writeJson(value, count);
  char* const text = scratch->takeText(counted.bytes + 1);
  if (text == nullptr) {
    return {};
  }
  Written written = {text, 0};
  const JsonSink write = {[](const char* from, size_t bytes, void* user) {
                            Written* const out = static_cast<Written*>(user);
                            std::memcpy(out->to + out->bytes, from, bytes);
                            out->bytes += bytes;
                          },
                          &written};
  writeJson(value, write);
  return {text, written.bytes};
}

ExprId textsExpression(JsonText* texts, uint32_t count, Grammar* grammar) {
  std::sort(texts, texts + count, isBefore);
  count = static_cast<uint32_t>(std::unique(texts, texts + count) - texts);
  return textsFrom(texts, count, 0, 0, grammar);
}

const uint8_t* expressionsWithText(const Grammar* grammar, ExprId from) {
  Scratch* const scratch = grammar->work()->begin();
  const uint32_t count = grammar->count() - from;
  uint8_t* const has = scratch->take<uint8_t>(count);
  // For each expression, the expressions that contain it, and the queue of updates.
  uint32_t* const first = scratch->take<uint32_t>(count + uint64_t{2});
  uint32_t* const users = scratch->take<uint32_t>(2 * uint64_t{count});
  uint32_t* const waiting = scratch->take<uint32_t>(count);
  if (waiting == nullptr || !grammar->work()->spend(kStepsOfExpression * count)) {
    return nullptr;
  }
  // UINT32_MAX: none.
  const auto definitionOf = [&](const Expr& rule) {
    const ExprId id = grammar->definition(rule.left);
    return id == UINT32_MAX ? id : id - from;
  };
  const auto forEachPart = [&](uint32_t i, const auto& visit) {
    const Expr& e = grammar->at(from + i);
    if (e.kind == ExprKind::kRule) {
      if (definitionOf(e) < count) {
        visit(definitionOf(e));
      }
    } else if (e.kind >= ExprKind::kSequence) {
      visit(e.left - from);
      if (e.kind != ExprKind::kRepeat) {
        visit(e.right - from);
      }
    }
  };
  for (uint32_t i = 0; i < count; ++i) {
    forEachPart(i, [&](uint32_t part) { ++first[part + 2]; });
  }
  for (uint32_t i = 2; i < count + 2; ++i) {
    first[i] += first[i - 1];
  }
  for (uint32_t i = 0; i < count; ++i) {
    forEachPart(i, [&](uint32_t part) { users[first[part + 1]++] = i; });
  }
  const auto hasText = [&](const Expr& e) {
    switch (e.kind) {
      case ExprKind::kNever:
        return false;
      case ExprKind::kEmpty:
      case ExprKind::kBytes:
      case ExprKind::kChars:
        return true;
      case ExprKind::kSequence:
        return has[e.left - from] != 0 && has[e.right - from] != 0;
      case ExprKind::kChoice:
        return has[e.left - from] != 0 || has[e.right - from] != 0;
      case ExprKind::kRepeat:
        return e.min == 0 || has[e.left - from] != 0;
      case ExprKind::kRule:
        return definitionOf(e) < count && has[definitionOf(e)] != 0;
    }
    return false;
  };
  uint32_t n_waiting = 0;
  const auto look = [&](uint32_t i) {
    if (has[i] == 0 && hasText(grammar->at(from + i))) {
      has[i] = 1;
      waiting[n_waiting++] = i;
    }
  };
  for (uint32_t i = 0; i < count; ++i) {
    look(i);
  }
  while (n_waiting != 0) {
    const uint32_t part = waiting[--n_waiting];
    for (uint32_t i = first[part]; i < first[part + 1]; ++i) {
      look(users[i]);
    }
  }
  return has;
}

ExprId rawCharacter(Grammar* grammar) { return grammar->chars(kRaw, std::size(kRaw)); }

ExprId countedCharacter(Grammar* grammar) {
  static constexpr char kLetters[] = "\"\\/bfnrt";
  CharRange letters[8];
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t c = static_cast<uint8_t>(kLetters[i]);
    letters[i] = {c, c};
  }
  const ExprId escape = grammar->sequence(grammar->text("\\"), grammar->chars(letters, 8));
  return grammar->choice(rawCharacter(grammar), escape);
}

ExprId anyCharacter(Grammar* grammar) {
  const CharRange hex[] = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
  const CharRange not_d[] = {{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}};
  const CharRange d[] = {{'D', 'D'}, {'d', 'd'}};
  const CharRange low[] = {{'0', '7'}};
  const ExprId digit = grammar->chars(hex, 3);
  const ExprId pair = grammar->repeat(digit, 2, 2);
  const ExprId outside = grammar->sequence(grammar->chars(not_d, 5), digit);
  const ExprId below = grammar->sequence(grammar->chars(d, 2), grammar->chars(low, 1));
  const ExprId number = grammar->sequence(grammar->choice(outside, below), pair);
  return grammar->choice(countedCharacter(grammar),
                         grammar->sequence(grammar->text("\\u"), number));
}

ExprId otherKey(JsonText* names, uint32_t count, Grammar* grammar) {
  const ExprId quote = grammar->text("\"");
  const RuleId free = grammar->newRule();
  grammar->define(free,
                  grammar->sequence(grammar->repeat(rawCharacter(grammar), 0, kAnyTimes), quote));
  count = static_cast<uint32_t>(
      std::remove_if(names, names + count, [](const JsonText& name) { return !isRaw(name); }) -
      names);
  std::sort(names, names + count, isBefore);
  List<KeyNode> nodes(grammar->scratch());
  List<ExprId> options(grammar->scratch());
  List<CharRange> taken(grammar->scratch());
  nodes.push({0, count, 0, grammar->newRule()});
  for (uint32_t n = 0; n < nodes.count() && !grammar->failed(); ++n) {
    const KeyNode node = nodes[n];
    (void)grammar->work()->spend(kStepsOfExpression * (4 + uint64_t{node.count}));
    options.cutTo(0);
    taken.cutTo(0);
    uint32_t i = node.first;
    const uint32_t node_end = node.first + node.count;
    bool is_name = false;
    for (; i < node_end && names[i].bytes == node.at; ++i) {
      is_name = true;
    }
    while (i < node_end) {
      const Utf8Char c = decodeUtf8(names[i].data + node.at, names[i].bytes - node.at);
      uint32_t end = i + 1;
      while (end < node_end && names[end].bytes >= node.at + c.bytes &&
             std::memcmp(names[end].data + node.at, names[i].data + node.at, c.bytes) == 0) {
        ++end;
      }
      const CharRange one = {c.code_point, c.code_point};
      const RuleId rule = grammar->newRule();
      taken.push(one);
      options.push(grammar->sequence(grammar->chars(&one, 1), grammar->rule(rule)));
      nodes.push({i, end - i, node.at + c.bytes, rule});
      i = end;
    }
    taken.push({0, 0x1F});
    taken.push({'"', '"'});
    taken.push({'\\', '\\'});
    options.push(
        grammar->sequence(grammar->chars(taken.begin(), taken.count(), true), grammar->rule(free)));
    if (!is_name) {
      options.push(quote);
    }
    grammar->define(node.rule, choiceOf(options.begin(), options.count(), grammar));
  }
  return nodes.isEmpty() ? grammar->never()
                         : grammar->sequence(quote, grammar->rule(nodes[0].rule));
}

}  // namespace oriel_internal
