// Converts a nondeterministic automaton to a deterministic one.
#include "grammar/automaton.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kNoState = UINT32_MAX;
// Limit for building one automaton; stops exponential growth.
constexpr uint64_t kMostRegexSteps = 40u << 20;
constexpr uint64_t kStepsOfClosure = 4;

// Sets of states, stored once each.
class NfaSets {
 public:
  NfaSets(const List<NfaState>& nfa, uint32_t most_states, Work* work)
      : nfa_(nfa),
        work_(work),
        most_(std::min(2 * most_states + 2, Dfa::kMostStates)),
        n_slots_(2 * most_ + 1),
        members_(work->scratch()),
        begins_(work->scratch()),
        stack_(work->scratch()),
        found_(work->scratch()) {
    marked_ = work->scratch()->take<uint32_t>(nfa.count());
    slots_ = work->scratch()->take<uint32_t>(n_slots_);
    ready_ = marked_ != nullptr && slots_ != nullptr && begins_.push(0);
  }

  bool ready() const { return ready_; }
  uint64_t steps() const { return steps_; }
  uint32_t count() const { return begins_.count() - 1; }

  void begin() {
    found_.cutTo(0);
    ++mark_;
  }
  // Adds a state and everything it reaches without a code point.
  void add(uint32_t state, bool at_start, bool at_end) {
    stack_.cutTo(0);
    push(state);
    while (!stack_.isEmpty()) {
      const uint32_t at = stack_.last();
      stack_.cutTo(stack_.count() - 1);
      ++steps_;
      (void)work_->spend(kStepsOfClosure);
      const NfaState& s = nfa_[at];
      if (s.kind == NfaState::kSplit) {
        push(s.out);
        push(s.other);
      } else if ((s.kind == NfaState::kTextStart && at_start) ||
                 (s.kind == NfaState::kTextEnd && at_end)) {
        push(s.out);
      }
      if (s.kind != NfaState::kSplit && s.kind != NfaState::kTextStart) {
        found_.push(at);
      }
    }
  }
  bool foundNothing() const { return found_.isEmpty(); }
  // The number of the finished set; kNoState: out of memory.
  uint32_t finish() {
    (void)work_->spend(kStepsOfMember * found_.count());
    std::sort(found_.begin(), found_.end());
    const uint64_t hash = hashBytes(found_.begin(), found_.count() * sizeof(uint32_t));
    uint32_t slot = static_cast<uint32_t>(hash) % n_slots_;
    for (; slots_[slot] != 0; slot = (slot + 1) % n_slots_) {
      const uint32_t set = slots_[slot] - 1;
      if (size(set) == found_.count() && std::equal(found_.begin(), found_.end(), begin(set))) {
        return set;
      }
    }
    if (count() >= most_) {
      return kNoState;
    }
    for (const uint32_t state : found_) {
      members_.push(state);
    }
    if (!begins_.push(members_.count())) {
      return kNoState;
    }
    slots_[slot] = count();
    return count() - 1;
  }
  const uint32_t* begin(uint32_t set) const { return members_.begin() + begins_[set]; }
  uint32_t size(uint32_t set) const { return begins_[set + 1] - begins_[set]; }

 private:
  static constexpr uint64_t kStepsOfMember = 16;  // to sort, look up and keep it

  void push(uint32_t state) {
    if (state != kNoState && marked_[state] != mark_) {
      marked_[state] = mark_;
      stack_.push(state);
    }
  }

  const List<NfaState>& nfa_;
  Work* const work_;
  const uint32_t most_;  // sets: of states, and of states at the end of a text
  const uint32_t n_slots_;
  List<uint32_t> members_;
  List<uint32_t> begins_;
  List<uint32_t> stack_;
  List<uint32_t> found_;
  uint32_t* marked_ = nullptr;
  uint32_t* slots_ = nullptr;
  uint32_t mark_ = 0;
  uint64_t steps_ = 0;
  bool ready_ = false;
};

}  // namespace

DfaResult Regex::toDfa(const Alphabet& alphabet, uint32_t most_states, Dfa* dfa) const {
  struct At {
    uint32_t set;
    uint32_t start;  // 1: nothing was read yet
  };
  NfaSets sets(states_, most_states, work_);
  uint8_t* const has = scratch_->take<uint8_t>(size_t{sets_.count()} * alphabet.n_symbols);
  if (!sets.ready() || has == nullptr) {
    return DfaResult::kNoMemory;
  }
  if (!work_->spend(size_t{sets_.count()} * alphabet.n_symbols)) {
    return DfaResult::kTooLarge;
  }
  for (uint32_t set = 0; set < sets_.count(); ++set) {
    for (uint32_t r = 0; r < sets_[set].count; ++r) {
      const CharRange& range = sets_[set].ranges[r];
      const uint32_t* const first =
          std::lower_bound(alphabet.first, alphabet.first + alphabet.n_intervals, range.first);
      for (uint32_t i = static_cast<uint32_t>(first - alphabet.first);
           i < alphabet.n_intervals && alphabet.first[i] <= range.last; ++i) {
        (void)work_->spend(2);
        has[size_t{set} * alphabet.n_symbols + alphabet.symbol[i]] = 1;
      }
    }
  }
  sets.begin();
  sets.add(start_, true, false);
  const At start = {sets.finish(), 1};
  bool too_large = false;
  const DfaResult result = exploreDfa(
      start, alphabet, most_states,
      [&](const At& from, uint32_t symbol, At* to) {
        if (symbol == 0 || too_large) {
          return false;
        }
        sets.begin();
        (void)work_->spend(2 * uint64_t{sets.size(from.set)});
        for (uint32_t i = 0; i < sets.size(from.set); ++i) {
          const NfaState& state = states_[sets.begin(from.set)[i]];
          if (state.kind == NfaState::kSet &&
              has[size_t{state.set} * alphabet.n_symbols + symbol] != 0) {
            sets.add(state.out, false, false);
          }
        }
        if (sets.foundNothing()) {
          return false;
        }
        *to = {sets.finish(), 0};
        too_large = to->set == kNoState || sets.steps() > kMostRegexSteps || scratch_->failed() ||
                    work_->ended();
        return !too_large;
      },
      [&](const At& at) {
        sets.begin();
        for (uint32_t i = 0; i < sets.size(at.set); ++i) {
          sets.add(sets.begin(at.set)[i], at.start != 0, true);
        }
        const uint32_t set = sets.finish();
        for (uint32_t i = 0; set != kNoState && i < sets.size(set); ++i) {
          if (states_[sets.begin(set)[i]].kind == NfaState::kAccept) {
            return true;
          }
        }
        return false;
      },
      work_, dfa);
  return too_large && result == DfaResult::kDone ? DfaResult::kTooLarge : result;
}

}  // namespace oriel_internal
