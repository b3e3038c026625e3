#include "grammar/dfa.h"

#include "text/utf8.h"

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

// Minimises automata.

namespace {

constexpr uint32_t kStepsOfJoining = 4;  // to look at an edge

// States from which some text is accepted.
uint8_t* liveStates(const Dfa& dfa, Work* work) {
  uint8_t* const live = work->scratch()->take<uint8_t>(dfa.n_states);
  if (live == nullptr) {
    return nullptr;
  }
  std::memcpy(live, dfa.accepts, dfa.n_states);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t state = dfa.n_states; state-- != 0;) {
      if (live[state] == 0 && !work->spend(dfa.alphabet.n_symbols)) {
        return nullptr;
      }
      for (uint32_t s = 0; live[state] == 0 && s < dfa.alphabet.n_symbols; ++s) {
        const uint16_t to = dfa.step(state, s);
        if (to != Dfa::kDead && live[to] != 0) {
          live[state] = 1;
          changed = true;
        }
      }
    }
  }
  return live;
}

// `place[state]`: its new number; kDead: removed. Several states may share a number.
void renumber(Dfa* dfa, const uint16_t* place, uint32_t n_states) {
  const uint32_t n_symbols = dfa->alphabet.n_symbols;
  // Numbers only decrease, and rows move in order, so none is overwritten early.
  uint32_t done = 0;
  for (uint32_t state = 0; state < dfa->n_states; ++state) {
    if (place[state] != done) {
      continue;
    }
    for (uint32_t s = 0; s < n_symbols; ++s) {
      const uint16_t to = dfa->step(state, s);
      dfa->next[static_cast<size_t>(done) * n_symbols + s] = to == Dfa::kDead ? to : place[to];
    }
    dfa->accepts[done++] = dfa->accepts[state];
  }
  dfa->n_states = n_states;
}

bool takeOutDead(Dfa* dfa, Work* work) {
  const uint8_t* const live = liveStates(*dfa, work);
  uint16_t* const place = work->scratch()->take<uint16_t>(dfa->n_states);
  if (live == nullptr || place == nullptr) {
    return false;
  }
  uint32_t n = 0;
  for (uint32_t i = 0; i < dfa->n_states; ++i) {
    place[i] = live[i] != 0 ? static_cast<uint16_t>(n++) : Dfa::kDead;
  }
  if (dfa->n_states != 0 && live[0] == 0) {
    dfa->n_states = 0;
    return true;
  }
  renumber(dfa, place, n);
  return true;
}

// Each predecessor of a state, once.
class Predecessors {
 public:
  // False: out of memory.
  bool find(const Dfa& dfa, Work* work) {
    Scratch* const scratch = work->scratch();
    const uint32_t n = dfa.n_states;
    const uint64_t edges = uint64_t{n} * dfa.alphabet.n_symbols;
    begins_ = scratch->take<uint32_t>(uint64_t{n} + 2);
    uint32_t* const seen = scratch->take<uint32_t>(n);
    if (begins_ == nullptr || seen == nullptr || !work->spend(2 * kStepsOfJoining * edges)) {
      return false;
    }
    forEachPair(dfa, 0, seen, [&](uint32_t, uint32_t to) { ++begins_[to + 2]; });
    for (uint32_t i = 2; i < n + 2; ++i) {
      begins_[i] += begins_[i - 1];
    }
    if (begins_[n + 1] * sizeof(*from_) > scratch->leftBytes()) {
      return false;
    }
    from_ = scratch->take<uint16_t>(begins_[n + 1]);
    if (from_ == nullptr) {
      return false;
    }
    forEachPair(dfa, n, seen, [&](uint32_t from, uint32_t to) {
      from_[begins_[to + 1]++] = static_cast<uint16_t>(from);
    });
    return true;
  }
  const uint16_t* begin(uint32_t state) const { return from_ + begins_[state]; }
  const uint16_t* end(uint32_t state) const { return from_ + begins_[state + 1]; }

 private:
  // `seen` must not hold numbers above `mark`.
  template <typename Visit>
  static void forEachPair(const Dfa& dfa, uint32_t mark, uint32_t* seen, const Visit& visit) {
    for (uint32_t from = 0; from < dfa.n_states; ++from) {
      ++mark;
      for (uint32_t s = 0; s < dfa.alphabet.n_symbols; ++s) {
        const uint16_t to = dfa.step(from, s);
        if (to != Dfa::kDead && seen[to] != mark) {
          seen[to] = mark;
          visit(from, to);
        }
      }
    }
  }

  uint32_t* begins_ = nullptr;
  uint16_t* from_ = nullptr;
};

// Partition refinement: states in different classes, or with targets in different classes, are separated until nothing
// changes. A round visits the predecessors of states that changed class. The largest part of a class keeps its number,
// so a state changes class at most log2(n) times, and the work is n log n even for long chains.
class Joining {
 public:
  Joining(Dfa* dfa, Work* work) : dfa_(dfa), work_(work), n_(dfa->n_states), slots_mask_(1) {
    Scratch* const scratch = work->scratch();
    while (slots_mask_ < 2 * n_) {
      slots_mask_ *= 2;
    }
    slots_ = scratch->take<uint16_t>(slots_mask_--);
    of_ = scratch->take<uint16_t>(n_);
    next_of_ = scratch->take<uint16_t>(n_);
    order_ = scratch->take<uint16_t>(n_);
    place_ = scratch->take<uint16_t>(n_);
    changed_ = scratch->take<uint16_t>(n_);
    touched_ = scratch->take<uint16_t>(n_);
    group_ = scratch->take<uint16_t>(n_);
    sorted_ = scratch->take<uint16_t>(n_);
    parts_ = scratch->take<Part>(n_);
    groups_ = scratch->take<Group>(uint64_t{n_} + 1);
  }

  void run() {
    if (work_->scratch()->failed() || !before_.find(*dfa_, work_)) {
      return;
    }
    begin();
    while (n_touched_ != 0) {
      n_changed_ = 0;
      for (uint32_t i = 0; i < n_touched_; ++i) {
        if (!split(touched_[i])) {
          return;
        }
      }
      n_touched_ = 0;
      touch();
    }
    // Classes are numbered by their first state, so numbers only decrease.
    uint32_t n = 0;
    std::fill_n(next_of_, n_, Dfa::kDead);
    for (uint32_t state = 0; state < n_; ++state) {
      uint16_t& number = next_of_[of_[state]];
      number = number == Dfa::kDead ? static_cast<uint16_t>(n++) : number;
      group_[state] = number;
    }
    renumber(dfa_, group_, n);
  }

 private:
  // A class: order_[begin] to order_[end - 1], with the states to visit first.
  struct Part {
    uint32_t begin, end, marked;
  };
  struct Group {
    uint32_t count;
    uint32_t slot;
    uint32_t end;  ///< end of those not yet placed
    uint16_t id;
  };

  void begin() {
    uint32_t n_accepting = 0;
    for (uint32_t state = 0; state < n_; ++state) {
      n_accepting += dfa_->accepts[state] != 0 ? 1 : 0;
    }
    uint32_t at[2] = {0, n_ - n_accepting};
    for (uint32_t state = 0; state < n_; ++state) {
      const uint32_t accepts = dfa_->accepts[state] != 0 ? 1 : 0;
      of_[state] = n_accepting == n_ ? 0 : static_cast<uint16_t>(accepts);
      order_[at[accepts]] = static_cast<uint16_t>(state);
      place_[state] = static_cast<uint16_t>(at[accepts]++);
    }
    const uint32_t bounds[] = {0, n_ - n_accepting, n_};
    for (uint32_t i = 0; i < 2; ++i) {
      if (bounds[i] != bounds[i + 1]) {
        parts_[n_parts_] = {bounds[i], bounds[i + 1], bounds[i + 1] - bounds[i]};
        touched_[n_touched_++] = static_cast<uint16_t>(n_parts_++);
      }
    }
  }

  // Marks the predecessors of changed states for a visit.
  void touch() {
    for (uint32_t i = 0; i < n_changed_; ++i) {
      of_[changed_[i]] = next_of_[changed_[i]];
    }
    for (uint32_t i = 0; i < n_changed_; ++i) {
      const uint16_t state = changed_[i];
      (void)work_->spend(static_cast<uint64_t>(before_.end(state) - before_.begin(state)));
      for (const uint16_t* from = before_.begin(state); from != before_.end(state); ++from) {
        Part& part = parts_[of_[*from]];
        const uint32_t to = part.begin + part.marked;
        if (place_[*from] < to) {
          continue;
        }
        if (part.marked++ == 0) {
          touched_[n_touched_++] = of_[*from];
        }
        const uint16_t other = order_[to];
        std::swap(order_[to], order_[place_[*from]]);
        std::swap(place_[other], place_[*from]);
      }
    }
  }

  uint16_t classOf(uint16_t state) const { return state == Dfa::kDead ? state : of_[state]; }
  bool isSame(uint32_t a, uint32_t b) const {
    for (uint32_t s = 0; s < dfa_->alphabet.n_symbols; ++s) {
      if (classOf(dfa_->step(a, s)) != classOf(dfa_->step(b, s))) {
        return false;
      }
    }
    return true;
  }
  uint64_t hashOf(uint32_t state) const {
    uint64_t hash = 0;
    for (uint32_t s = 0; s < dfa_->alphabet.n_symbols; ++s) {
      hash = (hash ^ classOf(dfa_->step(state, s))) * 0xd6e8feb86659fd93ull;
      hash ^= hash >> 29;
    }
    return hash;
  }
  // The group of states in the class with the same targets.
  uint16_t groupOf(uint16_t state) {
    uint32_t slot = static_cast<uint32_t>(hashOf(state)) & slots_mask_;
    while (slots_[slot] != 0 && !isSame(slots_[slot] - 1u, state)) {
      slot = (slot + 1) & slots_mask_;
    }
    if (slots_[slot] == 0) {
      slots_[slot] = static_cast<uint16_t>(state + 1);
      group_[state] = static_cast<uint16_t>(n_groups_);
      groups_[n_groups_++] = {0, slot, 0, 0};
    }
    return group_[slots_[slot] - 1u];
  }

  // Splits a class by targets. States that need no visit have equal targets. False: the work has ended.
  bool split(uint16_t id) {
    const Part part = parts_[id];
    parts_[id].marked = 0;
    if (part.end - part.begin == 1) {
      return true;
    }
    if (!work_->spend(kStepsOfJoining * (uint64_t{part.marked} + 1) * dfa_->alphabet.n_symbols)) {
      return false;
    }
    n_groups_ = 0;
    const uint32_t rest = part.end - part.begin - part.marked;
    if (rest != 0) {
      groups_[groupOf(order_[part.end - 1])].count = rest;
    }
    for (uint32_t i = part.begin; i < part.begin + part.marked; ++i) {
      const uint16_t group = groupOf(order_[i]);
      group_[order_[i]] = group;
      ++groups_[group].count;
    }
    uint32_t largest = 0;
    for (uint32_t g = 0; g < n_groups_; ++g) {
      slots_[groups_[g].slot] = 0;
      largest = groups_[g].count > groups_[largest].count ? g : largest;
    }
    if (n_groups_ > 1) {
      divide(id, part, rest, largest);
    }
    return true;
  }

  // The first group is placed at the class's end, later groups before it.
  void divide(uint16_t id, const Part& part, uint32_t rest, uint32_t largest) {
    uint32_t end = part.end;
    for (uint32_t g = 0; g < n_groups_; ++g) {
      Group& group = groups_[g];
      group.id = g == largest ? id : static_cast<uint16_t>(n_parts_++);
      group.end = g == 0 ? end - rest : end;
      parts_[group.id] = {end - group.count, end, 0};
      end -= group.count;
    }
    std::copy_n(order_ + part.begin, part.marked, sorted_);
    for (uint32_t i = 0; i < part.marked; ++i) {
      const uint32_t to = --groups_[group_[sorted_[i]]].end;
      order_[to] = sorted_[i];
      place_[sorted_[i]] = static_cast<uint16_t>(to);
    }
    for (uint32_t g = 0; g < n_groups_; ++g) {
      const Part& piece = parts_[groups_[g].id];
      for (uint32_t i = piece.begin; i < piece.end && g != largest; ++i) {
        next_of_[order_[i]] = groups_[g].id;
        changed_[n_changed_++] = order_[i];
      }
    }
  }

  Dfa* const dfa_;
  Work* const work_;
  const uint32_t n_;
  Predecessors before_;
  uint32_t slots_mask_;
  uint16_t* slots_ = nullptr;    ///< state plus 1; 0: free
  uint16_t* of_ = nullptr;       ///< class of each state
  uint16_t* next_of_ = nullptr;  ///< new class of each changed state
  uint16_t* order_ = nullptr;    ///< states, grouped by class
  uint16_t* place_ = nullptr;    ///< position of each state in order_
  uint16_t* changed_ = nullptr;
  uint16_t* touched_ = nullptr;  ///< classes
  uint16_t* group_ = nullptr;    ///< group of each state in its class
  uint16_t* sorted_ = nullptr;
  Part* parts_ = nullptr;
  Group* groups_ = nullptr;
  uint32_t n_parts_ = 0;
  uint32_t n_changed_ = 0;
  uint32_t n_touched_ = 0;
  uint32_t n_groups_ = 0;
};

}  // namespace

void reduceDfa(Dfa* dfa, Work* work) {
  if (takeOutDead(dfa, work) && dfa->n_states != 0) {
    Joining(dfa, work).run();
  }
}

}  // namespace oriel_internal
