// Minimises automata.
#include "grammar/dfa.h"

namespace oriel_internal {
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
