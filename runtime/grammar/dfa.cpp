#include "grammar/dfa.h"

#include "text/unicode.h"

namespace oriel_internal {
namespace {

constexpr uint64_t kStepsOfWrittenEdge = 256;  // to write an edge as an expression
constexpr uint64_t kStepsOfSorting = 32;       // per element
constexpr uint64_t kStepsOfInterval = 16;      // to look it up in a set

bool isIn(const CharSet& set, uint32_t code_point) {
  const CharRange* const end = set.ranges + set.count;
  const CharRange* const at =
      std::lower_bound(set.ranges, end, code_point,
                       [](const CharRange& range, uint32_t c) { return range.last < c; });
  return at != end && at->first <= code_point;
}

// Expressions for the characters of an edge. Many edges have the same characters. Sets beyond ASCII become a shared
// rule, so an automaton holds their bytes once.
class EdgeCache {
 public:
  EdgeCache(Grammar* grammar) : g_(grammar), known_(grammar->scratch()) {}

  ExprId chars(const List<CharRange>& ranges) {
    for (const Known& known : known_) {
      if (known.count == ranges.count() &&
          std::equal(ranges.begin(), ranges.end(), known.ranges, isSame)) {
        return known.expression;
      }
    }
    const ExprId expression = write(ranges);
    CharRange* const copy =
        known_.count() < kMost ? g_->scratch()->take<CharRange>(ranges.count()) : nullptr;
    if (copy != nullptr) {
      std::copy(ranges.begin(), ranges.end(), copy);
      known_.push({copy, ranges.count(), expression});
    }
    return expression;
  }

 private:
  static constexpr uint32_t kMost = 64;
  struct Known {
    const CharRange* ranges;
    uint32_t count;
    ExprId expression;
  };
  static bool isSame(const CharRange& a, const CharRange& b) {
    return a.first == b.first && a.last == b.last;
  }
  ExprId write(const List<CharRange>& ranges) {
    if (ranges[ranges.count() - 1].last < 0x80) {
      return g_->chars(ranges.begin(), ranges.count());
    }
    List<CharRange> cut(g_->scratch());
    for (const CharRange& range : ranges) {
      if (range.first < 0x80) {
        cut.push({range.first, std::min(range.last, 0x7Fu)});
      }
    }
    const uint32_t n_ascii = cut.count();
    for (const CharRange& range : ranges) {
      if (range.last >= 0x80) {
        cut.push({std::max(range.first, 0x80u), range.last});
      }
    }
    if (g_->failed()) {
      return g_->never();
    }
    const RuleId rule = g_->newRule();
    g_->define(rule, g_->chars(cut.begin() + n_ascii, cut.count() - n_ascii));
    const ExprId beyond = g_->rule(rule);
    return n_ascii == 0 ? beyond : g_->choice(g_->chars(cut.begin(), n_ascii), beyond);
  }

  Grammar* const g_;
  List<Known> known_;
};

// An edge's characters: raw code points, and code points that JSON escapes.
class Edge {
 public:
  Edge(DfaSpelling spelling, Grammar* grammar, EdgeCache* cache, List<CharRange>* raw,
       List<CharRange>* letters)
      : json_(spelling == DfaSpelling::kJsonString),
        g_(grammar),
        cache_(cache),
        raw_(raw),
        letters_(letters) {
    raw_->cutTo(0);
    letters_->cutTo(0);
  }

  void add(uint32_t first, uint32_t last) {
    if (!json_) {
      raw_->push({first, last});
      return;
    }
    for (; first <= last && first < 0x20; ++first) {
      addControl(first);
    }
    for (const uint32_t special : {0x22u, 0x5Cu}) {
      if (first <= special && special <= last) {
        letters_->push({special, special});
        if (first < special) {
          raw_->push({first, special - 1});
        }
        first = special + 1;
      }
    }
    if (first <= last) {
      raw_->push({first, last});
    }
  }

  ExprId expression() const {
    ExprId all = raw_->isEmpty() ? UINT32_MAX : cache_->chars(*raw_);
    if (!letters_->isEmpty()) {
      const ExprId escape = g_->sequence(g_->text("\\"), cache_->chars(*letters_));
      all = all == UINT32_MAX ? escape : g_->choice(all, escape);
    }
    // Control characters without a letter escape have a six-byte spelling, which is used only if nothing else leads
    // there.
    return all != UINT32_MAX ? all : controlsByNumber();
  }

 private:
  void addControl(uint32_t c) {
    static constexpr char kLetters[] = "btn\0fr";
    const char letter = c >= 8 && c <= 13 ? kLetters[c - 8] : '\0';
    if (letter != '\0') {
      const uint32_t code = static_cast<uint8_t>(letter);
      letters_->push({code, code});
    } else {
      controls_ |= 1u << c;
    }
  }
  ExprId controlsByNumber() const {
    ExprId all = g_->never();
    for (uint32_t c = 0; c < 32; ++c) {
      if ((controls_ >> c & 1) != 0) {
        const char hex[] = "0123456789abcdef";
        const char escape[] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        const ExprId one = g_->bytes(escape, sizeof(escape));
        all = g_->at(all).kind == ExprKind::kNever ? one : g_->choice(all, one);
      }
    }
    return all;
  }

  const bool json_;
  Grammar* const g_;
  EdgeCache* const cache_;
  List<CharRange>* const raw_;
  List<CharRange>* const letters_;
  uint32_t controls_ = 0;
};

bool hasLoop(const Dfa& dfa, uint32_t state) {
  uint32_t symbol = 0;
  while (symbol < dfa.alphabet.n_symbols && dfa.step(state, symbol) != state) {
    ++symbol;
  }
  return symbol != dfa.alphabet.n_symbols;
}

// Length in code points of the longest path to a state, ignoring back edges. Counts that differ from it by multiples of
// a unit share states.
class Depths {
 public:
  static constexpr uint32_t kLoop =
      UINT32_MAX;  ///< the state has an edge to itself: a unit is more than one code point

  Depths(const Dfa& dfa, Work* work)
      : dfa_(dfa), work_(work), way_(work->scratch()), done_(work->scratch()) {}

  /// Null: out of memory or steps.
  const uint32_t* find() {
    Scratch* const scratch = work_->scratch();
    place_ = scratch->take<uint32_t>(dfa_.n_states);
    depth_ = scratch->take<uint32_t>(dfa_.n_states);
    const uint64_t edges = uint64_t{dfa_.n_states} * dfa_.alphabet.n_symbols;
    if (place_ == nullptr || depth_ == nullptr || !work_->spend(3 * edges)) {
      return nullptr;
    }
    sortStates();
    // From the last finished state to the first, forward edges lead to lower places.
    for (uint32_t i = done_.count(); i-- != 0;) {
      const uint16_t state = done_[i];
      for (uint32_t s = 0; s < dfa_.alphabet.n_symbols; ++s) {
        const uint16_t to = dfa_.step(state, s);
        if (to != Dfa::kDead && place_[to] < place_[state]) {
          depth_[to] = std::max(depth_[to], depth_[state] + 1);
        }
      }
    }
    for (uint32_t state = 0; state < dfa_.n_states; ++state) {
      depth_[state] = hasLoop(dfa_, state) ? kLoop : depth_[state];
    }
    return scratch->failed() ? nullptr : depth_;
  }

 private:
  struct Visit {
    uint16_t state;
    uint16_t symbol;
  };
  static constexpr uint32_t kVisiting = UINT32_MAX;

  // Depth first: a state is finished after all its targets, except those still in progress.
  void sortStates() {
    way_.push({0, 0});
    place_[0] = kVisiting;
    while (!way_.isEmpty()) {
      Visit& top = way_.last();
      if (top.symbol == dfa_.alphabet.n_symbols) {
        const uint16_t state = top.state;
        way_.cutTo(way_.count() - 1);
        done_.push(state);
        place_[state] = done_.count();
        continue;
      }
      const uint16_t to = dfa_.step(top.state, top.symbol++);
      if (to != Dfa::kDead && place_[to] == 0) {
        place_[to] = kVisiting;
        way_.push({to, 0});
      }
    }
  }

  const Dfa& dfa_;
  Work* const work_;
  List<Visit> way_;
  List<uint16_t> done_;
  uint32_t* place_ = nullptr;  ///< index in done_, plus 1
  uint32_t* depth_ = nullptr;
};

}  // namespace

uint16_t Alphabet::symbolOf(uint32_t code_point) const {
  return symbol[std::upper_bound(first, first + n_intervals, code_point) - first - 1];
}

Alphabet makeAlphabet(const CharSet* sets, uint32_t count, Work* work) {
  Scratch* const scratch = work->scratch();
  List<uint32_t> firsts(scratch);
  firsts.push(0);
  firsts.push(kSurrogates.first);
  firsts.push(kSurrogates.last + 1);
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t r = 0; r < sets[i].count; ++r) {
      firsts.push(sets[i].ranges[r].first);
      if (sets[i].ranges[r].last < kLastCodePoint) {
        firsts.push(sets[i].ranges[r].last + 1);
      }
    }
  }
  if (!work->spend(uint64_t{firsts.count()} * kStepsOfSorting)) {
    return {};
  }
  std::sort(firsts.begin(), firsts.end());
  firsts.cutTo(static_cast<uint32_t>(std::unique(firsts.begin(), firsts.end()) - firsts.begin()));
  Alphabet alphabet;
  const uint32_t n = firsts.count();
  uint16_t* const symbol = scratch->take<uint16_t>(n);
  uint16_t* const split = scratch->take<uint16_t>(2 * (kMostSymbols + 1));
  if (symbol == nullptr || split == nullptr || scratch->failed()) {
    return alphabet;
  }
  for (uint32_t i = 0; i < n; ++i) {
    symbol[i] = firsts[i] >= kSurrogates.first && firsts[i] <= kSurrogates.last ? 0 : 1;
  }
  uint32_t n_symbols = 2;
  for (uint32_t set = 0; set < count; ++set) {
    if (!work->spend(n * kStepsOfInterval)) {
      return alphabet;
    }
    // Splits symbols that are partly in the set.
    std::memset(split, 0, 2 * n_symbols * sizeof(*split));
    uint32_t n_next = 1;
    for (uint32_t i = 0; i < n; ++i) {
      if (symbol[i] == 0) {
        continue;
      }
      uint16_t* const to = &split[2 * symbol[i] + (isIn(sets[set], firsts[i]) ? 1 : 0)];
      if (*to == 0) {
        *to = static_cast<uint16_t>(n_next++);
      }
      symbol[i] = *to;
    }
    if (n_next > kMostSymbols / 2) {
      return alphabet;
    }
    n_symbols = n_next;
  }
  return {firsts.begin(), symbol, n, n_symbols};
}

DfaResult intersectDfa(const Dfa& a, const Dfa& b, uint32_t most_states, Work* work, Dfa* out) {
  struct Pair {
    uint16_t a, b;
  };
  if (a.n_states == 0 || b.n_states == 0) {
    *out = {};
    return DfaResult::kDone;
  }
  return exploreDfa(
      Pair{0, 0}, a.alphabet, most_states,
      [&](const Pair& from, uint32_t symbol, Pair* to) {
        *to = {a.step(from.a, symbol), b.step(from.b, symbol)};
        return to->a != Dfa::kDead && to->b != Dfa::kDead;
      },
      [&](const Pair& at) { return (a.accepts[at.a] & b.accepts[at.b]) != 0; }, work, out);
}

DfaResult complementDfa(const Dfa& dfa, uint32_t most_states, Work* work, Dfa* out) {
  const uint32_t start = dfa.n_states == 0 ? uint32_t{Dfa::kDead} : 0;
  return exploreDfa(
      start, dfa.alphabet, most_states,
      [&](uint32_t from, uint32_t symbol, uint32_t* to) {
        *to = from == Dfa::kDead ? from : dfa.step(from, symbol);
        return symbol != 0;  // texts contain no surrogates
      },
      [&](uint32_t at) { return at == Dfa::kDead || dfa.accepts[at] == 0; }, work, out);
}

DfaResult limitDfa(const Dfa& dfa, const LengthLimits& limits, uint32_t most_states, Work* work,
                   Dfa* out) {
  struct Counted {
    uint32_t state, count;
  };
  if (dfa.n_states == 0 || limits.min > limits.max) {
    *out = {};
    return DfaResult::kDone;
  }
  const bool rounds = limits.unit > 1 && limits.exact < limits.max;
  const uint32_t* const depths = rounds ? Depths(dfa, work).find() : nullptr;
  if (rounds && depths == nullptr) {
    return DfaResult::kTooLarge;
  }
  const bool is_bounded = limits.max != UINT32_MAX;
  const uint32_t enough = is_bounded ? limits.max : limits.min;  // no need to count further
  return exploreDfa(
      Counted{0, 0}, dfa.alphabet, most_states,
      [&](const Counted& from, uint32_t symbol, Counted* to) {
        const uint16_t state = dfa.step(from.state, symbol);
        if (from.count == limits.max || state == Dfa::kDead) {
          return false;
        }
        uint32_t count = std::min(from.count + 1, enough);
        if (rounds && count > limits.exact && depths[state] != Depths::kLoop) {
          const uint32_t over = (count + limits.unit - depths[state] % limits.unit) % limits.unit;
          count = std::min(over == 0 ? count : count + limits.unit - over, enough);
        }
        *to = {state, count};
        return true;
      },
      [&](const Counted& at) { return dfa.accepts[at.state] != 0 && at.count >= limits.min; }, work,
      out);
}

uint32_t countLoops(const Dfa& dfa, Work* work) {
  uint32_t count = 0;
  for (uint32_t state = 0; state < dfa.n_states && work->spend(dfa.alphabet.n_symbols); ++state) {
    count += hasLoop(dfa, state) ? 1 : 0;
  }
  return count;
}

bool mayMeet(const Dfa& a, const Dfa& b, Work* work) {
  if (a.n_states == 0 || b.n_states == 0) {
    return false;
  }
  // The coarsest common alphabet: pairs of symbols that share a code point.
  List<uint32_t> symbols(work->scratch());
  uint32_t at_a = 0;
  uint32_t at_b = 0;
  while (at_a < a.alphabet.n_intervals || at_b < b.alphabet.n_intervals) {
    const uint32_t next_a =
        at_a < a.alphabet.n_intervals ? a.alphabet.first[at_a] : kLastCodePoint + 1;
    const uint32_t next_b =
        at_b < b.alphabet.n_intervals ? b.alphabet.first[at_b] : kLastCodePoint + 1;
    at_a += next_a <= next_b ? 1 : 0;
    at_b += next_b <= next_a ? 1 : 0;
    symbols.push(uint32_t{a.alphabet.symbol[at_a - 1]} << 16 | b.alphabet.symbol[at_b - 1]);
  }
  (void)work->spend(symbols.count() * kStepsOfSorting);
  std::sort(symbols.begin(), symbols.end());
  symbols.cutTo(
      static_cast<uint32_t>(std::unique(symbols.begin(), symbols.end()) - symbols.begin()));
  // Paths in both automata at once.
  const uint64_t n_pairs = uint64_t{a.n_states} * b.n_states;
  uint64_t* const seen = work->scratch()->take<uint64_t>(n_pairs / 64 + 1);
  List<uint32_t> waiting(work->scratch());
  if (seen == nullptr || !waiting.push(0) || !work->spend(n_pairs / 64)) {
    return true;
  }
  seen[0] = 1;
  while (!waiting.isEmpty()) {
    const uint32_t pair = waiting.last();
    waiting.cutTo(waiting.count() - 1);
    const uint32_t from_a = pair / b.n_states;
    const uint32_t from_b = pair % b.n_states;
    if ((a.accepts[from_a] & b.accepts[from_b]) != 0 ||
        !work->spend(kStepsOfState + 2 * uint64_t{symbols.count()})) {
      return true;
    }
    for (const uint32_t both : symbols) {
      const uint16_t to_a = a.step(from_a, both >> 16);
      const uint16_t to_b = b.step(from_b, both & UINT16_MAX);
      if (to_a == Dfa::kDead || to_b == Dfa::kDead) {
        continue;
      }
      const uint32_t to = to_a * b.n_states + to_b;
      if ((seen[to / 64] >> to % 64 & 1) == 0) {
        seen[to / 64] |= uint64_t{1} << to % 64;
        if (!waiting.push(to)) {
          return true;
        }
      }
    }
  }
  return false;
}

uint32_t shortestText(const Dfa& dfa, Work* work) {
  Scratch* const scratch = work->scratch();
  uint32_t* const distance = scratch->take<uint32_t>(dfa.n_states);
  List<uint16_t> queue(scratch);
  if (distance == nullptr || !queue.push(0)) {
    return 0;
  }
  for (uint32_t at = 0; at < queue.count(); ++at) {
    const uint16_t state = queue[at];
    (void)work->spend(dfa.alphabet.n_symbols);
    if (dfa.accepts[state] != 0) {
      return distance[state];
    }
    for (uint32_t s = 0; s < dfa.alphabet.n_symbols; ++s) {
      const uint16_t to = dfa.step(state, s);
      if (to != Dfa::kDead && to != 0 && distance[to] == 0) {
        distance[to] = distance[state] + 1;
        queue.push(to);
      }
    }
  }
  return 0;
}

uint32_t longestText(const Dfa& dfa, Work* work) {
  // A state is reached after all its predecessors. States on a loop are never reached.
  Scratch* const scratch = work->scratch();
  uint32_t* const distance = scratch->take<uint32_t>(dfa.n_states);
  uint32_t* const n_before = scratch->take<uint32_t>(dfa.n_states);
  uint16_t* const queue = scratch->take<uint16_t>(uint64_t{dfa.n_states} + 1);
  const uint64_t edges = uint64_t{dfa.n_states} * dfa.alphabet.n_symbols;
  if (distance == nullptr || n_before == nullptr || queue == nullptr || !work->spend(2 * edges)) {
    return UINT32_MAX;
  }
  const auto forEachNext = [&](uint32_t state, const auto& visit) {
    for (uint32_t s = 0; s < dfa.alphabet.n_symbols; ++s) {
      const uint16_t to = dfa.step(state, s);
      if (to != Dfa::kDead) {
        visit(to);
      }
    }
  };
  for (uint32_t state = 0; state < dfa.n_states; ++state) {
    forEachNext(state, [&](uint16_t to) { ++n_before[to]; });
  }
  uint32_t count = dfa.n_states != 0 && n_before[0] == 0 ? 1 : 0;
  uint32_t longest = 0;
  for (uint32_t at = 0; at < count; ++at) {
    const uint32_t next = distance[queue[at]] + 1;
    longest = std::max(longest, distance[queue[at]]);
    forEachNext(queue[at], [&](uint16_t to) {
      distance[to] = std::max(distance[to], next);
      if (--n_before[to] == 0) {
        queue[count++] = to;
      }
    });
  }
  return count == dfa.n_states ? longest : UINT32_MAX;
}

bool dfaAccepts(const Dfa& dfa, const char* text, size_t bytes) {
  uint16_t state = dfa.n_states == 0 ? Dfa::kDead : 0;
  for (size_t at = 0; at < bytes && state != Dfa::kDead;) {
    const Utf8Char c = decodeUtf8(text + at, bytes - at);
    state = dfa.step(state, dfa.alphabet.symbolOf(c.code_point));
    at += c.bytes;
  }
  return state != Dfa::kDead && dfa.accepts[state] != 0;
}

ExprId dfaExpression(const Dfa& dfa, DfaSpelling spelling, Grammar* grammar) {
  if (dfa.n_states == 0) {
    return grammar->never();
  }
  Scratch* const scratch = grammar->scratch();
  const uint32_t n_symbols = dfa.alphabet.n_symbols;
  RuleId* const rules = scratch->take<RuleId>(dfa.n_states);
  uint8_t* const done = scratch->take<uint8_t>(n_symbols);
  List<CharRange> raw(scratch);
  List<CharRange> letters(scratch);
  EdgeCache cache(grammar);
  if (rules == nullptr || done == nullptr) {
    return grammar->never();
  }
  for (uint32_t i = 0; i < dfa.n_states; ++i) {
    rules[i] = grammar->newRule();
  }
  const ExprId end = spelling == DfaSpelling::kJsonString ? grammar->text("\"") : grammar->empty();
  for (uint32_t state = 0; state < dfa.n_states && !grammar->failed(); ++state) {
    ExprId all = dfa.accepts[state] != 0 ? end : UINT32_MAX;
    std::memset(done, 0, n_symbols);
    if (!grammar->work()->spend(n_symbols)) {
      break;
    }
    for (uint32_t symbol = 0; symbol < n_symbols; ++symbol) {
      const uint16_t to = dfa.step(state, symbol);
      if (to == Dfa::kDead || done[symbol] != 0) {
        continue;
      }
      if (!grammar->work()->spend(kStepsOfWrittenEdge + n_symbols + dfa.alphabet.n_intervals)) {
        break;
      }
      Edge edge(spelling, grammar, &cache, &raw, &letters);
      for (uint32_t i = 0; i < dfa.alphabet.n_intervals; ++i) {
        if (dfa.step(state, dfa.alphabet.symbol[i]) == to) {
          const uint32_t end_of =
              i + 1 < dfa.alphabet.n_intervals ? dfa.alphabet.first[i + 1] - 1 : kLastCodePoint;
          edge.add(dfa.alphabet.first[i], end_of);
        }
      }
      for (uint32_t s = symbol; s < n_symbols; ++s) {
        done[s] = dfa.step(state, s) == to ? 1 : done[s];
      }
      const ExprId one = grammar->sequence(edge.expression(), grammar->rule(rules[to]));
      all = all == UINT32_MAX ? one : grammar->choice(all, one);
    }
    grammar->define(rules[state], all == UINT32_MAX ? grammar->never() : all);
  }
  return grammar->rule(rules[0]);
}

}  // namespace oriel_internal
