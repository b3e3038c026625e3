#include "grammar/state_sets.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "grammar/machine.h"

namespace oriel_internal {
namespace {

constexpr uint32_t stateOf(uint32_t place) { return place & 0xFFFF; }
constexpr uint32_t stackOf(uint32_t place) { return place >> 16; }

/// To insert a place into a table or list.
constexpr uint64_t kStepsOfPlace = 8;
/// Shares of the remaining memory, in 64ths.
constexpr size_t kPlacesPart = 12;
constexpr size_t kStacksPart = 8;

/// Allocates pieces of one block.
struct Pieces {
  uint8_t* at;
  uint8_t* end;

  template <typename T>
  T* take(size_t count) {
    T* const piece = reinterpret_cast<T*>(at);
    at += alignUp(count * sizeof(T), 16);
    return piece;
  }
  size_t left() const { return static_cast<size_t>(end - at); }
};

}  // namespace

bool StateSets::init(const Automaton* automaton, void* memory, size_t bytes) {
  if (bytes < kLeastBytes) {
    return false;
  }
  automaton_ = automaton;
  n_classes_ = automaton->n_classes;
  Pieces pieces = {static_cast<uint8_t*>(memory), static_cast<uint8_t*>(memory) + bytes};
  seen_ = pieces.take<Seen>(kSeenSlots);
  found_ = pieces.take<Place>(kMostInSet);
  waiting_ = pieces.take<Place>(kMostVisited);
  entries_ = pieces.take<Entry>(kMostEntries);
  ways_ = pieces.take<Way>(kMostWays);
  stack_hashes_ = pieces.take<uint16_t>(kStackHashes);
  const size_t left = pieces.left();
  most_places_ = static_cast<uint32_t>(left * kPlacesPart / 64 / sizeof(Place));
  places_ = pieces.take<Place>(most_places_);
  most_stacks_ = static_cast<uint32_t>(
      std::min<size_t>(left * kStacksPart / 64 / (sizeof(Stack) + sizeof(uint32_t)), kFirstEntry));
  stacks_ = pieces.take<Stack>(most_stacks_);
  marks_ = pieces.take<uint32_t>(most_stacks_);
  const size_t set_bytes = sizeof(Set) + n_classes_ * sizeof(Id) + 4 * sizeof(Id);
  most_sets_ =
      static_cast<uint32_t>(std::min<size_t>((pieces.left() - 256) / set_bytes, UINT16_MAX - 2));
  sets_ = pieces.take<Set>(most_sets_);
  next_ = pieces.take<Id>(size_t{most_sets_} * n_classes_);
  set_slots_ = 1;
  while (2 * set_slots_ <= 4 * most_sets_) {
    set_slots_ *= 2;
  }
  set_hashes_ = pieces.take<Id>(set_slots_);
  std::fill_n(seen_, kSeenSlots, Seen());
  step_ = 0;
  bounded_ = false;
  findKindClasses();
  empty();
  return true;
}

void StateSets::empty() {
  clearHashes();
  n_sets_ = 1;
  sets_[kNothing] = Set();
  std::fill_n(next_, n_classes_, kNothing);
  n_places_ = 0;
  n_stacks_ = 1;
  stacks_[0] = Stack();
}

void StateSets::clearHashes() {
  std::memset(set_hashes_, 0, set_slots_ * sizeof(Id));
  std::memset(stack_hashes_, 0, kStackHashes * sizeof(uint16_t));
}

// --- One step ------------------------------------------------------------------------------------

void StateSets::beginStep() {
  if (++step_ == 0) {
    std::fill_n(seen_, kSeenSlots, Seen());
    step_ = 1;
  }
  n_seen_ = n_found_ = n_entries_ = n_ways_ = 0;
  found_end_ = false;
}

bool StateSets::isNew(Place place) {
  uint32_t slot = (place * 0x9E3779B1u) >> 7 & (kSeenSlots - 1);
  while (seen_[slot].step == step_) {
    if (seen_[slot].place == place) {
      return false;
    }
    slot = (slot + 1) & (kSeenSlots - 1);
  }
  seen_[slot] = {place, step_};
  ++n_seen_;
  return true;
}

// Queues a place, unless it was visited or no stack height is left to finish.
void StateSets::want(uint32_t state, uint32_t stack) {
  (void)steps_.spend(kStepsOfPlace);
  const Place place = state | stack << 16;
  if (automaton_->states[state].need + heightOf(stack) > kMostHeight || n_seen_ == kMostVisited) {
    bounded_ = true;
    return;
  }
  if (!isNew(place)) {
    return;
  }
  waiting_[n_waiting_++] = place;
}

// Enters a routine, with a return state.
void StateSets::enter(uint32_t state, uint32_t stack, uint32_t back_to) {
  const uint32_t height = heightOf(stack) + 1;
  if (height + automaton_->states[state].need > kMostHeight ||
      height - 1 + automaton_->states[back_to].need > kMostHeight || n_ways_ == kMostWays) {
    bounded_ = true;
    return;
  }
  uint32_t i = 0;
  while (i < n_entries_ && (entries_[i].state != state || entries_[i].height != height)) {
    ++i;
  }
  (void)steps_.spend(kStepsOfPlace + i);
  if (i == n_entries_) {
    if (i == kMostEntries || n_seen_ == kMostVisited) {
      bounded_ = true;
      return;
    }
    entries_[n_entries_++] = {static_cast<uint16_t>(state), static_cast<uint16_t>(height)};
    want(state, kFirstEntry + i);
  }
  Entry& entry = entries_[i];
  const Place place = back_to | stack << 16;
  for (uint32_t at = entry.ways; at != 0; at = ways_[at - 1].next) {
    (void)steps_.spend(1);
    if (ways_[at - 1].back_to == place) {
      return;
    }
  }
  ways_[n_ways_++] = {place, entry.ways};
  entry.ways = static_cast<uint16_t>(n_ways_);
  if (entry.left) {
    want(back_to, stack);
  }
}

void StateSets::comeBack(uint32_t stack) {
  if (stack >= kFirstEntry) {
    Entry& entry = entries_[stack - kFirstEntry];
    entry.left = true;
    for (uint32_t at = entry.ways; at != 0; at = ways_[at - 1].next) {
      want(stateOf(ways_[at - 1].back_to), stackOf(ways_[at - 1].back_to));
    }
    return;
  }
  found_end_ = found_end_ || stack == 0;
  for (; stack != 0; stack = stacks_[stack].rest) {
    want(stacks_[stack].back_to, stacks_[stack].below);
  }
}

void StateSets::visit(Place place) {
  const uint32_t id = stateOf(place);
  if (id == Automaton::kFinal) {
    comeBack(stackOf(place));
    return;
  }
  const Automaton::State& state = automaton_->states[id];
  if (state.n_bytes != 0 && n_found_ == kMostInSet) {
    bounded_ = true;
  } else if (state.n_bytes != 0) {
    found_[n_found_++] = place;
  }
  // The last is visited first.
  for (uint32_t e = automaton_->states[id + 1].edges; e > state.edges + state.n_bytes; --e) {
    const Automaton::Edge& edge = automaton_->edges[e - 1];
    if (edge.with == Automaton::kFinal) {
      want(edge.target, stackOf(place));
    } else {
      enter(edge.target, stackOf(place), edge.with);
    }
  }
}

// Adds all places reachable before the next byte.
void StateSets::addAll(uint32_t state, uint32_t stack) {
  want(state, stack);
  while (n_waiting_ != 0) {
    visit(waiting_[--n_waiting_]);
    n_waiting_ = steps_.ended() ? 0 : n_waiting_;
  }
}

uint32_t StateSets::slotOf(const Stack& stack) {
  return (stack.below * 0x9E3779B1u ^ stack.back_to * 0x85EBCA6Bu ^ stack.rest * 0xC2B2AE35u) >>
             12 &
         (kStackHashes - 1);
}

// Makes a stack that returns to `back_to` or into `rest`. False: no room.
bool StateSets::push(Place back_to, uint32_t rest, uint32_t* pushed) {
  Stack stack;
  stack.below = static_cast<uint16_t>(stackOf(back_to));
  stack.back_to = static_cast<uint16_t>(stateOf(back_to));
  stack.rest = static_cast<uint16_t>(rest);
  uint16_t& head = stack_hashes_[slotOf(stack)];
  for (uint32_t at = head; at != 0; at = stacks_[at].same_hash) {
    (void)steps_.spend(1);
    if (stacks_[at].below == stack.below && stacks_[at].back_to == stack.back_to &&
        stacks_[at].rest == stack.rest) {
      *pushed = at;
      return true;
    }
  }
  if (n_stacks_ == most_stacks_) {
    return false;
  }
  stack.same_hash = head;
  stack.height = static_cast<uint16_t>(stacks_[stack.below].height + 1);
  stack.size = static_cast<uint16_t>(
      std::min<uint32_t>(UINT16_MAX, stacks_[stack.below].size + stacks_[rest].size + 1u));
  stacks_[n_stacks_] = stack;
  head = static_cast<uint16_t>(n_stacks_);
  *pushed = n_stacks_++;
  return true;
}

// Turns an entry into a stack: its return places, sorted, without duplicates.
bool StateSets::settle(Entry* entry) {
  uint32_t count = 0;
  for (uint32_t at = entry->ways; at != 0; at = ways_[at - 1].next) {
    const Place way = ways_[at - 1].back_to;
    const uint32_t below = stackOf(way);
    waiting_[count++] =
        below < kFirstEntry ? way : stateOf(way) | entries_[below - kFirstEntry].stack << 16;
  }
  std::sort(waiting_, waiting_ + count);
  count = static_cast<uint32_t>(std::unique(waiting_, waiting_ + count) - waiting_);
  uint32_t stack = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (!push(waiting_[i], stack, &stack)) {
      return false;
    }
  }
  entry->stack = static_cast<uint16_t>(stack);
  return true;
}

// Turns all entries into stacks, lowest first, since others refer to them. False: no room.
bool StateSets::settle() {
  uint32_t height = UINT32_MAX;
  uint32_t highest = 0;
  for (uint32_t i = 0; i < n_entries_; ++i) {
    height = std::min<uint32_t>(height, entries_[i].height);
    highest = std::max<uint32_t>(highest, entries_[i].height);
  }
  for (; height <= highest; ++height) {
    (void)steps_.spend(n_entries_);
    for (uint32_t i = 0; i < n_entries_; ++i) {
      if (entries_[i].height == height && !settle(&entries_[i])) {
        return false;
      }
    }
  }
  for (uint32_t i = 0; i < n_found_; ++i) {
    const uint32_t stack = stackOf(found_[i]);
    if (stack >= kFirstEntry) {
      found_[i] = stateOf(found_[i]) | entries_[stack - kFirstEntry].stack << 16;
    }
  }
  return true;
}

StateSets::Id StateSets::findNext(Id set, uint32_t byte_class) {
  const uint8_t byte = automaton_->byte_of[byte_class];
  beginStep();
  for (uint32_t i = 0; i < sets_[set].count; ++i) {
    const Place place = places_[sets_[set].first + i];
    const Automaton::State& state = automaton_->states[stateOf(place)];
    if (!steps_.spend(kStepsOfPlace + state.n_bytes)) {
      return kNothing;
    }
    for (uint32_t e = state.edges; e < state.edges + state.n_bytes; ++e) {
      if (automaton_->edges[e].takes(byte)) {
        addAll(automaton_->edges[e].target, stackOf(place));
      }
    }
  }
  const Id next = intern();
  if (next != kFull && !steps_.ended()) {
    next_[set * n_classes_ + byte_class] = next;
  }
  return next;
}

StateSets::Id StateSets::start() {
  beginStep();
  addAll(automaton_->root, 0);
  return intern();
}

uint32_t StateSets::hashOf(const Place* places, uint32_t count, bool complete) {
  uint32_t hash = complete ? 0x85EBCA6Bu : 1;
  for (uint32_t i = 0; i < count; ++i) {
    hash = (hash ^ places[i]) * 0x9E3779B1u;
    hash ^= hash >> 15;
  }
  return hash;
}

// Returns the stored set equal to the new one, or stores it.
StateSets::Id StateSets::intern() {
  if (!steps_.spend(uint64_t{n_found_} * kStepsOfPlace + n_classes_ / 4) ||
      (n_found_ == 0 && !found_end_)) {
    return kNothing;
  }
  if (!settle()) {
    return kFull;
  }
  std::sort(found_, found_ + n_found_);
  n_found_ = static_cast<uint32_t>(std::unique(found_, found_ + n_found_) - found_);
  cutToStacks();
  Id& head = set_hashes_[hashOf(found_, n_found_, found_end_) & (set_slots_ - 1)];
  for (Id at = head; at != 0; at = sets_[at].same_hash) {
    const Set& set = sets_[at];
    if (set.count == n_found_ && set.complete == found_end_ &&
        std::equal(found_, found_ + n_found_, places_ + set.first)) {
      return at;
    }
  }
  if (n_sets_ == most_sets_ || n_found_ > most_places_ - n_places_) {
    return kFull;
  }
  std::copy_n(found_, n_found_, places_ + n_places_);
  Set set;
  set.first = n_places_;
  set.count = static_cast<uint16_t>(n_found_);
  set.same_hash = head;
  set.complete = found_end_;
  sets_[n_sets_] = set;
  std::fill_n(next_ + n_sets_ * n_classes_, n_classes_, kUnknown);
  n_places_ += n_found_;
  head = static_cast<Id>(n_sets_);
  return static_cast<Id>(n_sets_++);
}

// A set may need at most half of the stacks, so that making room always succeeds.
void StateSets::cutToStacks() {
  uint64_t most = 0;
  for (uint32_t i = 0; i < n_found_; ++i) {
    most += stacks_[stackOf(found_[i])].size;
  }
  if (most <= most_stacks_ / 2) {
    return;
  }
  std::memset(marks_, 0, most_stacks_ * sizeof(uint32_t));
  (void)steps_.spend(n_stacks_);
  uint32_t n_marked = 0;
  for (uint32_t i = 0; i < n_found_; ++i) {
    n_marked += mark(stackOf(found_[i]));
    if (n_marked > most_stacks_ / 2) {
      bounded_ = true;
      n_found_ = i;
    }
  }
}

// --- Making room ---------------------------------------------------------------------------------

// Marks a stack and everything below it; returns the number of newly marked ones. The queue is a linked list in the
// marks.
uint32_t StateSets::mark(uint32_t stack) {
  constexpr uint32_t kWaits = 1u << 31;
  uint32_t count = 0;
  uint32_t waiting = 0;
  const auto add = [&](uint32_t at) {
    if (at != 0 && marks_[at] == 0) {
      marks_[at] = kWaits | waiting;
      waiting = at;
      ++count;
    }
  };
  add(stack);
  while (waiting != 0) {
    const uint32_t at = waiting;
    waiting = marks_[at] & ~kWaits;
    marks_[at] = 1;
    add(stacks_[at].below);
    add(stacks_[at].rest);
  }
  return count;
}

void StateSets::keep(Id* sets, uint32_t count) {
  (void)steps_.spend(kStackHashes + set_slots_ + n_stacks_ + n_sets_ + uint64_t{count} * count);
  // Keeps sets in order while their places and stacks fit into half of the memory.
  std::memset(marks_, 0, most_stacks_ * sizeof(uint32_t));
  uint32_t n_places = 0;
  uint32_t n_stacks = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const Set& set = sets_[sets[i]];
    uint32_t more = 0;
    for (uint32_t p = set.first; p < set.first + set.count; ++p) {
      more += mark(stackOf(places_[p]));
    }
    n_places += set.count;
    n_stacks += more;
    if (i != 0 &&
        (i >= most_sets_ / 2 || n_places > most_places_ / 2 || n_stacks > most_stacks_ / 2)) {
      std::fill(sets + i, sets + count, kNothing);
      bounded_ = true;
      break;
    }
  }
  keepStacks();
  keepSets(sets, count);
}

// Moves marked stacks down, referenced ones first; the marks become new numbers.
void StateSets::keepStacks() {
  uint32_t n_kept = 1;
  marks_[0] = 0;
  for (uint32_t at = 1; at < n_stacks_; ++at) {
    if (marks_[at] == 0) {
      continue;
    }
    Stack stack = stacks_[at];
    stack.below = static_cast<uint16_t>(marks_[stack.below]);
    stack.rest = static_cast<uint16_t>(marks_[stack.rest]);
    marks_[at] = n_kept;
    stacks_[n_kept++] = stack;
  }
  n_stacks_ = n_kept;
  clearHashes();
  for (uint32_t at = 1; at < n_stacks_; ++at) {
    uint16_t& head = stack_hashes_[slotOf(stacks_[at])];
    stacks_[at].same_hash = head;
    head = static_cast<uint16_t>(at);
  }
}

void StateSets::keepSets(Id* sets, uint32_t count) {
  // The transition table is invalid now: its first row first marks the sets to keep, then holds their new numbers.
  for (uint32_t id = 0; id < n_sets_; ++id) {
    sets_[id].note = 0;
  }
  for (uint32_t i = 0; i < count; ++i) {
    sets_[sets[i]].note = 1;
  }
  sets_[kNothing].note = 0;
  uint32_t n_kept = 1;
  uint32_t n_places = 0;
  for (uint32_t id = 1; id < n_sets_; ++id) {
    if (sets_[id].note == 0) {
      continue;
    }
    Set set = sets_[id];
    for (uint32_t p = 0; p < set.count; ++p) {
      const Place place = places_[set.first + p];
      places_[n_places + p] = stateOf(place) | marks_[stackOf(place)] << 16;
    }
    set.first = n_places;
    n_places += set.count;
    set.note = 0;
    set.kinds_known = false;
    Id& head = set_hashes_[hashOf(places_ + set.first, set.count, set.complete) & (set_slots_ - 1)];
    set.same_hash = head;
    head = static_cast<Id>(n_kept);
    for (uint32_t i = 0; i < count; ++i) {
      // New numbers are smaller, so a changed entry is not mistaken for an unchanged one.
      if (sets[i] == id) {
        sets[i] = static_cast<Id>(n_kept);
      }
    }
    sets_[n_kept] = set;
    std::fill_n(next_ + n_kept * n_classes_, n_classes_, kUnknown);
    ++n_kept;
  }
  n_sets_ = n_kept;
  n_places_ = n_places;
}

// --- Character kinds ------------------------------------------------------------------------------

void StateSets::findKindClasses() {
  const auto addClass = [&](Following* following, uint32_t byte) {
    const uint8_t c = automaton_->class_of[byte];
    uint8_t* const end = following->classes + following->count;
    if (following->count < sizeof(following->classes) &&
        std::find(following->classes, end, c) == end) {
      following->classes[following->count++] = c;
    }
  };
  for (Following& kind : kinds_) {
    kind.count = 0;
  }
  for (uint32_t byte = 0; byte < 0x80; ++byte) {
    addClass(&kinds_[static_cast<uint32_t>(kindOfAscii(static_cast<uint8_t>(byte)))], byte);
  }
  constexpr uint8_t kShapes[5][2] = {
      {0x80, 0xBF}, {0xA0, 0xBF}, {0x80, 0x9F}, {0x90, 0xBF}, {0x80, 0x8F}};
  for (uint32_t shape = 0; shape < 5; ++shape) {
    following_[shape].count = 0;
    for (uint32_t byte = kShapes[shape][0]; byte <= kShapes[shape][1]; ++byte) {
      addClass(&following_[shape], byte);
    }
  }
  n_leads_ = 0;
  for (uint32_t byte = 0xC2; byte <= 0xF4; ++byte) {
    const uint8_t shape = byte == 0xE0   ? 1
                          : byte == 0xED ? 2
                          : byte == 0xF0 ? 3
                          : byte == 0xF4 ? 4
                                         : 0;
    const Lead lead = {automaton_->class_of[byte], shape,
                       static_cast<uint8_t>(byte < 0xE0   ? 0
                                            : byte < 0xF0 ? 1
                                                          : 2)};
    const bool known = std::any_of(leads_, leads_ + n_leads_, [&](const Lead& other) {
      return other.class_of == lead.class_of && other.shape == lead.shape &&
             other.more == lead.more;
    });
    if (!known) {
      leads_[n_leads_++] = lead;
    }
  }
}

// Follows all bytes of `following`, each with `more` continuation bytes. *one becomes false if they reach different
// sets. False: no room. *to is kUnknown initially.
bool StateSets::follow(Id set, const Following& following, uint32_t more, Id* to, bool* one) {
  for (uint32_t i = 0; i < following.count && *one; ++i) {
    const Id next = step(set, automaton_->byte_of[following.classes[i]]);
    if (next == kFull) {
      return false;
    }
    if (more == 0 || next == kNothing) {
      *one = *to == kUnknown || *to == next;
      *to = next;
    } else if (!follow(next, following_[0], more - 1, to, one)) {
      return false;
    }
  }
  return true;
}

bool StateSets::beyondAscii(Id set, Id* to, bool* one) {
  for (uint32_t i = 0; i < n_leads_ && *one; ++i) {
    const Id next = step(set, automaton_->byte_of[leads_[i].class_of]);
    if (next == kFull) {
      return false;
    }
    if (next == kNothing) {
      *one = *to == kUnknown || *to == kNothing;
      *to = kNothing;
    } else if (!follow(next, following_[leads_[i].shape], leads_[i].more, to, one)) {
      return false;
    }
  }
  return true;
}

bool StateSets::kindsFrom(Id set, KindsFrom* kinds) {
  if (sets_[set].kinds_known) {
    *kinds = sets_[set].kinds;
    return true;
  }
  KindsFrom result;
  for (uint32_t kind = 0; kind < kTextKinds; ++kind) {
    if (kind == static_cast<uint32_t>(TextKind::kOther)) {
      continue;
    }
    Id to = kUnknown;
    bool one = true;
    const bool ascii = kind != static_cast<uint32_t>(TextKind::kBeyondAscii);
    if (!(ascii ? follow(set, kinds_[kind], 0, &to, &one) : beyondAscii(set, &to, &one))) {
      return false;
    }
    if (!one) {
      continue;
    }
    if (to == kNothing) {
      result.never = static_cast<uint16_t>(result.never | 1u << kind);
    } else if (result.to == kNothing || result.to == to) {
      result.to = to;
      result.same = static_cast<uint16_t>(result.same | 1u << kind);
    }
  }
  if (steps_.ended()) {
    result = KindsFrom();
  }
  sets_[set].kinds = *kinds = result;
  sets_[set].kinds_known = !steps_.ended();
  return true;
}

}  // namespace oriel_internal
