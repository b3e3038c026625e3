#include "grammar/automaton.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace oriel_internal {
namespace {

constexpr uint16_t kDead = UINT16_MAX;

/// Facts about an Nfa that packing needs.
class Analysis {
 public:
  Analysis(const Nfa& nfa, Scratch* scratch) : nfa_(nfa), scratch_(scratch) {}

  /// False: out of memory.
  bool findNeeds() {
    const uint32_t n = nfa_.states.count();
    if (!turnRound()) {
      return false;
    }
    need_ = scratch_->take<uint16_t>(n);
    done_ = scratch_->take<bool>(n);
    // Each edge can improve a state twice: through either of its target states.
    uint32_t* now = scratch_->take<uint32_t>(n_uses_ + uint64_t{1});
    uint32_t* later = scratch_->take<uint32_t>(n_uses_ + uint64_t{1});
    if (need_ == nullptr || done_ == nullptr || now == nullptr || later == nullptr) {
      return false;
    }
    std::fill_n(need_, n, kDead);
    // Knuth's generalisation of Dijkstra's algorithm: states come up in order of their need, and a state's need is
    // final when it comes up.
    now[0] = Nfa::kFinal;
    need_[Nfa::kFinal] = 0;
    uint32_t n_now = 1;
    for (uint16_t level = 0; n_now != 0; ++level) {
      uint32_t n_later = 0;
      while (n_now != 0) {
        const uint32_t state = now[--n_now];
        if (done_[state] || need_[state] != level) {
          continue;
        }
        done_[state] = true;
        for (uint32_t i = first_use_[state]; i < first_use_[state + 1]; ++i) {
          const uint16_t by = needBy(nfa_.edges[uses_[i].edge]);
          const uint32_t from = uses_[i].from;
          if (by < need_[from]) {
            need_[from] = by;
            if (by == level) {
              now[n_now++] = from;
            } else {
              later[n_later++] = from;
            }
          }
        }
      }
      std::swap(now, later);
      n_now = n_later;
    }
    return findEmpty(now) && findSilent(now);
  }

  bool isDead(uint32_t state) const { return need_[state] == kDead; }
  /// True if all paths from the state end without a byte.
  bool isSilent(uint32_t state) const { return !loud_[state]; }
  uint16_t need(uint32_t state) const { return need_[state]; }
  bool isDead(const Nfa::Edge& edge) const {
    return edge.kind == Nfa::EdgeKind::kCall ? isDead(startOf(edge)) || isDead(edge.after)
                                             : isDead(edge.target);
  }
  uint32_t startOf(const Nfa::Edge& call) const { return nfa_.routines[call.target].start; }

  /// Finds a routine that reaches itself before any byte. *found is only meaningful if memory sufficed.
  bool findLeftRecursion(bool* found) {
    const uint32_t n = nfa_.routines.count();
    // 0: not seen, 1: in progress, 2: done.
    uint8_t* const colour = scratch_->take<uint8_t>(n);
    seen_ = scratch_->take<uint32_t>(nfa_.states.count());
    Blocks<Visit> way(scratch_, Nfa::kMostStates);
    *found = false;
    if (colour == nullptr || seen_ == nullptr) {
      return false;
    }
    Blocks<uint32_t> callees(scratch_, Nfa::kMostEdges);
    for (uint32_t root = 0; root < n; ++root) {
      if (colour[root] != 0) {
        continue;
      }
      if (!enter(root, colour, &way, &callees)) {
        return false;
      }
      while (way.count() != 0) {
        Visit& top = way[way.count() - 1];
        if (top.next == top.end) {
          colour[top.routine] = 2;
          callees.cut(top.begin);
          (void)way.pop();
          continue;
        }
        const uint32_t callee = callees[top.next++];
        if (colour[callee] == 1) {
          *found = true;
          return true;
        }
        if (colour[callee] == 0 && !enter(callee, colour, &way, &callees)) {
          return false;
        }
      }
    }
    return true;
  }

 private:
  struct Use {
    uint32_t from = 0;  ///< state that owns the edge
    uint32_t edge = 0;
  };
  struct Visit {
    uint32_t routine = 0;
    uint32_t begin = 0;  ///< index of its callees
    uint32_t next = 0;
    uint32_t end = 0;
  };

  template <typename Visitor>
  void forEachEdge(uint32_t state, const Visitor& visit) const {
    for (uint32_t e = nfa_.states[state].edges; e != Nfa::kNone; e = nfa_.edges[e].next) {
      visit(e);
    }
  }

  // Builds the reverse edges of each state.
  bool turnRound() {
    const uint32_t n = nfa_.states.count();
    first_use_ = scratch_->take<uint32_t>(uint64_t{n} + 2);
    if (first_use_ == nullptr) {
      return false;
    }
    const auto forEachUse = [&](const auto& visit) {
      for (uint32_t state = 0; state < n; ++state) {
        forEachEdge(state, [&](uint32_t e) {
          const Nfa::Edge& edge = nfa_.edges[e];
          if (edge.kind == Nfa::EdgeKind::kCall) {
            visit(startOf(edge), Use{state, e});
            visit(edge.after, Use{state, e});
          } else {
            visit(edge.target, Use{state, e});
          }
        });
      }
    };
    forEachUse([&](uint32_t target, const Use&) {
      ++first_use_[target + 2];
      ++n_uses_;
    });
    for (uint32_t i = 2; i < n + 2; ++i) {
      first_use_[i] += first_use_[i - 1];
    }
    uses_ = scratch_->take<Use>(n_uses_);
    if (uses_ == nullptr) {
      return false;
    }
    forEachUse([&](uint32_t target, const Use& use) { uses_[first_use_[target + 1]++] = use; });
    return true;
  }

  uint16_t needBy(const Nfa::Edge& edge) const {
    if (edge.kind != Nfa::EdgeKind::kCall) {
      return need_[edge.target];
    }
    const uint32_t start = startOf(edge);
    if (!done_[start] || !done_[edge.after]) {
      return kDead;
    }
    if (edge.after == Nfa::kFinal) {
      return need_[start];
    }
    const uint32_t pushed = std::min<uint32_t>(need_[start] + 1u, kDead - 1u);
    return std::max(static_cast<uint16_t>(pushed), need_[edge.after]);
  }

  // Finds the states from which a routine may end without a byte.
  bool findEmpty(uint32_t* waiting) {
    empty_ = scratch_->take<bool>(nfa_.states.count());
    if (empty_ == nullptr) {
      return false;
    }
    uint32_t count = 1;
    waiting[0] = Nfa::kFinal;
    empty_[Nfa::kFinal] = true;
    while (count != 0) {
      const uint32_t state = waiting[--count];
      for (uint32_t i = first_use_[state]; i < first_use_[state + 1]; ++i) {
        const Nfa::Edge& edge = nfa_.edges[uses_[i].edge];
        const bool empty =
            edge.kind == Nfa::EdgeKind::kFree ||
            (edge.kind == Nfa::EdgeKind::kCall && empty_[startOf(edge)] && empty_[edge.after]);
        if (empty && !empty_[uses_[i].from]) {
          empty_[uses_[i].from] = true;
          waiting[count++] = uses_[i].from;
        }
      }
    }
    return true;
  }

  bool findSilent(uint32_t* waiting) {
    const uint32_t n = nfa_.states.count();
    loud_ = scratch_->take<bool>(n);
    if (loud_ == nullptr) {
      return false;
    }
    uint32_t count = 0;
    for (uint32_t state = 0; state < n; ++state) {
      forEachEdge(state, [&](uint32_t e) {
        const Nfa::Edge& edge = nfa_.edges[e];
        if (edge.kind == Nfa::EdgeKind::kByte && !isDead(edge) && !loud_[state]) {
          loud_[state] = true;
          waiting[count++] = state;
        }
      });
    }
    while (count != 0) {
      const uint32_t state = waiting[--count];
      for (uint32_t i = first_use_[state]; i < first_use_[state + 1]; ++i) {
        if (!loud_[uses_[i].from] && !isDead(nfa_.edges[uses_[i].edge])) {
          loud_[uses_[i].from] = true;
          waiting[count++] = uses_[i].from;
        }
      }
    }
    return true;
  }

  // Starts a routine and the routines it calls before any byte. A state belongs to one routine, except for states that
  // only take a byte.
  bool enter(uint32_t routine, uint8_t* colour, Blocks<Visit>* way, Blocks<uint32_t>* callees) {
    colour[routine] = 1;
    const uint32_t begin = callees->count();
    Blocks<uint32_t>& waiting = waiting_;
    waiting.cut(0);
    bool ok = waiting.push(nfa_.routines[routine].start);
    while (ok && waiting.count() != 0) {
      const uint32_t state = waiting.pop();
      if (seen_[state] == routine + 1) {
        continue;
      }
      seen_[state] = routine + 1;
      forEachEdge(state, [&](uint32_t e) {
        const Nfa::Edge& edge = nfa_.edges[e];
        if (edge.kind == Nfa::EdgeKind::kByte || isDead(edge)) {
          return;
        }
        if (edge.kind == Nfa::EdgeKind::kFree) {
          ok = ok && waiting.push(edge.target);
          return;
        }
        ok = ok && callees->push(edge.target);
        if (empty_[startOf(edge)]) {
          ok = ok && waiting.push(edge.after);
        }
      });
    }
    return ok && way->push({routine, begin, begin, callees->count()});
  }

  const Nfa& nfa_;
  Scratch* const scratch_;
  Blocks<uint32_t> waiting_{scratch_, Nfa::kMostEdges + 1};
  uint32_t n_uses_ = 0;
  uint32_t* first_use_ = nullptr;
  Use* uses_ = nullptr;
  uint16_t* need_ = nullptr;
  bool* done_ = nullptr;
  bool* empty_ = nullptr;
  bool* loud_ = nullptr;
  uint32_t* seen_ = nullptr;
};

/// Writes the reachable and completable states into the automaton's memory.
class Packer {
 public:
  Packer(const Nfa& nfa, const Analysis& analysis, Scratch* scratch)
      : nfa_(nfa), analysis_(analysis), scratch_(scratch) {}

  Status pack(const Log& log, void* memory, size_t capacity, Automaton* automaton) {
    id_of_ = scratch_->take<uint32_t>(nfa_.states.count());
    order_ = scratch_->take<uint32_t>(nfa_.states.count());
    stands_for_ = scratch_->take<uint32_t>(nfa_.states.count());
    if (id_of_ == nullptr || order_ == nullptr || stands_for_ == nullptr) {
      return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                      "no memory to compile a grammar: close other apps");
    }
    (void)idOf(Nfa::kFinal);
    const uint32_t root = idOf(nfa_.routines[0].start);
    uint64_t n_edges = 0;
    bool fits = true;
    for (uint32_t i = 0; i < n_states_; ++i) {
      uint32_t count = 0;
      forEachEdge(order_[i], [&](const Nfa::Edge& edge) {
        (void)packed(edge);
        ++count;
      });
      fits = fits && count <= UINT16_MAX;
      n_edges += count;
    }
    const uint64_t state_bytes = (uint64_t{n_states_} + 1) * sizeof(Automaton::State);
    const uint64_t bytes = alignUp(state_bytes + n_edges * sizeof(Automaton::Edge), 16);
    if (!fits || n_states_ > Automaton::kMostStates || bytes > capacity) {
      return failTooLarge(log);
    }
    auto* const states = static_cast<Automaton::State*>(memory);
    auto* const edges =
        reinterpret_cast<Automaton::Edge*>(static_cast<uint8_t*>(memory) + state_bytes);
    write(states, edges);
    automaton->states = states;
    automaton->edges = edges;
    automaton->n_states = n_states_;
    automaton->root = root;
    automaton->bytes = static_cast<size_t>(bytes);
    findClasses(automaton);
    return kOk;
  }

 private:
  /// Longest chain of states without bytes that is skipped at once.
  static constexpr uint32_t kMostPassed = 64;

  template <typename Visitor>
  void forEachEdge(uint32_t state, const Visitor& visit) const {
    for (uint32_t e = nfa_.states[state].edges; e != Nfa::kNone; e = nfa_.edges[e].next) {
      const Nfa::Edge& edge = nfa_.edges[e];
      if (!analysis_.isDead(edge)) {
        visit(edge);
      }
    }
  }
  // Resolves a chain to its last state, and updates the chain so that it is followed only once.
  uint32_t passOver(uint32_t state) {
    uint32_t way[kMostPassed];
    uint32_t passed = 0;
    uint32_t next = passOne(state);
    while (next != state && stands_for_[next] == 0 && passed < kMostPassed) {
      way[passed++] = state;
      state = next;
      next = passOne(state);
    }
    const uint32_t end = stands_for_[next] != 0 ? stands_for_[next] - 1 : next;
    stands_for_[state] = end + 1;
    for (uint32_t i = 0; i < passed; ++i) {
      stands_for_[way[i]] = end + 1;
    }
    return end;
  }
  // The next state in such a chain, or the state itself.
  uint32_t passOne(uint32_t state) const {
    if (analysis_.isSilent(state)) {
      return Nfa::kFinal;
    }
    uint32_t target = state;
    bool one = true;
    forEachEdge(state, [&](const Nfa::Edge& edge) {
      uint32_t to = state;
      if (!one || edge.kind == Nfa::EdgeKind::kByte || !leadsOn(edge, &to)) {
        one = false;
      } else if (to != state) {
        one = target == state || target == to;
        target = to;
      }
    });
    return one ? target : state;
  }
  // True if an edge only leads to another state.
  bool leadsOn(const Nfa::Edge& edge, uint32_t* to) const {
    const bool call = edge.kind == Nfa::EdgeKind::kCall;
    if (call && analysis_.isSilent(analysis_.startOf(edge))) {
      *to = edge.after;
      return true;
    }
    *to = call ? analysis_.startOf(edge) : edge.target;
    return !call || analysis_.isSilent(edge.after);
  }
  uint32_t idOf(uint32_t state) {
    if (stands_for_[state] == 0) {
      stands_for_[state] = passOver(state) + 1;
    }
    state = stands_for_[state] - 1;
    if (id_of_[state] == 0) {
      order_[n_states_] = state;
      id_of_[state] = ++n_states_;
    }
    return id_of_[state] - 1;
  }
  Automaton::Edge packed(const Nfa::Edge& edge) {
    if (edge.kind == Nfa::EdgeKind::kByte) {
      return {narrow(idOf(edge.target)),
              static_cast<uint16_t>(edge.first | uint32_t{edge.last} << 8)};
    }
    uint32_t to = 0;
    if (leadsOn(edge, &to)) {
      return {narrow(idOf(to)), Automaton::kFinal};
    }
    return {narrow(idOf(analysis_.startOf(edge))), narrow(idOf(edge.after))};
  }
  // Larger numbers are refused before.
  static uint16_t narrow(uint32_t state) { return static_cast<uint16_t>(state); }

  void write(Automaton::State* states, Automaton::Edge* edges) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n_states_; ++i) {
      const uint16_t need = analysis_.need(order_[i]);
      states[i] = {count, 0, static_cast<uint8_t>(std::min<uint32_t>(need, UINT8_MAX))};
      const auto put = [&](bool bytes) {
        forEachEdge(order_[i], [&](const Nfa::Edge& edge) {
          if ((edge.kind == Nfa::EdgeKind::kByte) == bytes) {
            edges[count++] = packed(edge);
          }
        });
      };
      put(true);
      states[i].n_bytes = static_cast<uint16_t>(count - states[i].edges);
      put(false);
    }
    states[n_states_] = {count, 0, 0};
  }

  // Each range of the edges gets a random number, and each byte the sum of the numbers of its ranges. Bytes with equal
  // sums are one class.
  static void findClasses(Automaton* automaton) {
    uint64_t sums[256] = {};
    uint32_t seen[(1 << 16) / 32] = {};
    uint64_t random = 0x9E3779B97F4A7C15ull;
    for (uint32_t s = 0; s < automaton->n_states; ++s) {
      const Automaton::State& state = automaton->states[s];
      for (uint32_t e = state.edges; e < state.edges + state.n_bytes; ++e) {
        const uint32_t range = automaton->edges[e].with;
        if ((seen[range / 32] >> range % 32 & 1u) != 0) {
          continue;
        }
        seen[range / 32] |= 1u << range % 32;
        random = (random ^ random >> 31) * 0xBF58476D1CE4E5B9ull + range;
        for (uint32_t byte = range & 0xFF; byte <= range >> 8; ++byte) {
          sums[byte] += random ^ random >> 29;
          automaton->takes[byte] = true;
        }
      }
    }
    automaton->n_classes = 0;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t c = 0;
      while (c < automaton->n_classes && sums[automaton->byte_of[c]] != sums[byte]) {
        ++c;
      }
      if (c == automaton->n_classes) {
        automaton->byte_of[automaton->n_classes++] = static_cast<uint8_t>(byte);
      }
      automaton->class_of[byte] = static_cast<uint8_t>(c);
    }
  }

  const Nfa& nfa_;
  const Analysis& analysis_;
  Scratch* const scratch_;
  uint32_t* id_of_ = nullptr;       ///< plus 1; 0: not assigned
  uint32_t* stands_for_ = nullptr;  ///< the state that replaces it, plus 1
  uint32_t* order_ = nullptr;
  uint32_t n_states_ = 0;
};

}  // namespace

Status compileAutomaton(const Grammar& grammar, const Log& log, void* memory, size_t capacity,
                        Automaton* automaton) {
  *automaton = Automaton();
  if (grammar.failed()) {
    if (grammar.work()->stopped()) {
      return ORIEL_ERROR_CANCELLED;
    }
    if (grammar.noMemory()) {
      return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                      "no memory to compile a grammar: close other apps");
    }
    return failTooLarge(log);
  }
  Scratch* const scratch = grammar.scratch();
  Nfa nfa(scratch);
  ORIEL_TRY(buildNfa(grammar, log, &nfa));
  Analysis analysis(nfa, scratch);
  bool left_recursion = false;
  if (!analysis.findNeeds() || !analysis.findLeftRecursion(&left_recursion)) {
    return scratch->noMemory() ? log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                                          "no memory to compile a grammar: close other apps")
                               : failTooLarge(log);
  }
  if (left_recursion) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a rule of the grammar begins with itself (left recursion): let it begin with "
                    "something else, or write the repetition as *");
  }
  const uint32_t start = nfa.routines[0].start;
  if (analysis.isDead(start)) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "no text fits the grammar: give every recursion an end");
  }
  if (analysis.need(start) > kMostHeight) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "even the shortest text of the grammar nests deeper than %u: nest less",
                    kMostHeight);
  }
  return Packer(nfa, analysis, scratch).pack(log, memory, capacity, automaton);
}

}  // namespace oriel_internal
