#include "grammar/machine.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/hash.h"
#include "grammar/automaton.h"

namespace oriel_internal {
namespace {

/// Fewer kinds than this do not speed up the walk.
constexpr uint32_t kWorthIt = kindBit(TextKind::kLower) | kindBit(TextKind::kBeyondAscii);
constexpr uint32_t kAllKinds = (1u << kTextKinds) - 1;
/// Trial of a grammar: number of bytes, and the number after which its sets must have grown to continue.
constexpr uint32_t kTriedBytes = 64;
constexpr uint32_t kFirstTriedBytes = 16;
/// More places in a set than any ordinary grammar has.
constexpr uint32_t kManyPlaces = 24;

}  // namespace

// --- Allowed tokens, byte by byte -----------------------------------------------------------------

/// One walk over the token trie, from the text's current set. Skips branches whose tokens contain none of the `open`
/// kinds.
class Constraint::Walk {
 public:
  Walk(Constraint* of, uint32_t open, uint32_t* mask)
      : constraint_(*of),
        sets_(of->sets_),
        tree_((open & ~kOddKinds) == 0 ? of->trie_.odd() : of->trie_.all()),
        open_(open),
        mask_(mask) {}

  void run() {
    const TokenTrie::Node* const nodes = tree_.nodes;
    const uint8_t* const class_of = constraint_.automaton_.class_of;
    path_[0] = constraint_.now_;
    ends_[0] = tree_.count;
    uint32_t depth = 0;
    const Set* known = sets_.knownNext(path_[0]);
    uint32_t end = ends_[0];
    for (uint32_t i = 0;;) {
      while (i == end) {
        if (depth == 0) {
          return;
        }
        --depth;
        end = ends_[depth];
        known = sets_.knownNext(path_[depth]);
      }
      const TokenTrie::Node node = nodes[i];
      if ((node.kinds() & open_) == 0) {
        i += node.skip();
        continue;
      }
      Set next = known[class_of[node.byte()]];
      if (next >= StateSets::kUnknown) {
        next = find(depth, node.byte());
        if (sets_.steps().ended()) {
          return;
        }
        known = sets_.knownNext(path_[depth]);
      }
      if (next == StateSets::kNothing) {
        i += node.skip();
        continue;
      }
      const uint32_t token = node.token();
      if (token != TokenTrie::Node::kNoToken) {
        mask_[token / 32] |= 1u << token % 32;
      }
      if (node.skip() != 1) {
        ++depth;
        ends_[depth] = end = i + node.skip();
        path_[depth] = next;
        known = sets_.knownNext(next);
      }
      ++i;
    }
  }

 private:
  // The set after a byte. Makes room if needed; forbids the byte if there is still no room.
  Set find(uint32_t depth, uint8_t byte) {
    Set next = sets_.step(path_[depth], byte);
    if (next == StateSets::kFull) {
      constraint_.dropMasks();
      sets_.keep(path_, depth + 1);
      constraint_.now_ = path_[0];
      next = path_[depth] == StateSets::kNothing ? StateSets::kNothing
                                                 : sets_.step(path_[depth], byte);
    }
    return sets_.orNothing(next);
  }

  Constraint& constraint_;
  StateSets& sets_;
  const TokenTrie::Tree& tree_;
  const uint32_t open_;
  uint32_t* const mask_;
  Set path_[kMaxTokenBytes + 1] = {};
  uint32_t ends_[kMaxTokenBytes + 1] = {};
};

// --- Masks ---------------------------------------------------------------------------------------

// Inside strings, some kinds of characters are all allowed for a number of characters. Finds that number and the kinds.
bool Constraint::findFreeText(FreeText* found) {
  FreeText free = {kAllKinds, 0};
  Set set = now_;
  KindsFrom from;
  while (true) {
    if (!sets_.kindsFrom(set, &from)) {
      return false;
    }
    if ((free.kinds & from.same & kWorthIt) == 0 || free.length == kLongestPlain) {
      break;
    }
    free.kinds &= from.same;
    ++free.length;
    if (from.to == set) {
      free.length = kLongestPlain;
      break;
    }
    set = from.to;
  }
  if (free.length < kLongestPlain) {
    free.kinds &= from.never;
  }
  *found = (free.kinds & kWorthIt) != 0 && free.length != 0 ? free : FreeText();
  return true;
}

Constraint::FreeText Constraint::findFreeText() {
  FreeText found;
  if (!findFreeText(&found)) {
    makeRoom(nullptr);
    if (!findFreeText(&found)) {
      makeRoom(nullptr);
      return {};
    }
  }
  return found;
}

void Constraint::fillKinds(const FreeText& free, uint32_t* mask) const {
  const uint32_t n_words = trie_.words();
  std::memset(mask, 0, n_words * sizeof(uint32_t));
  for (uint32_t kind = 0; kind < kTextKinds; ++kind) {
    if ((free.kinds >> kind & 1u) != 0) {
      continue;
    }
    const uint32_t* const having = trie_.having(kind);
    for (uint32_t i = 0; i < n_words; ++i) {
      mask[i] |= having[i];
    }
  }
  for (uint32_t i = 0; i < n_words; ++i) {
    mask[i] = ~mask[i];
  }
  if (free.length == kLongestPlain) {
    return;
  }
  // Lengths are below 128: adding the rest to 128 sets the upper bit if a length is too large.
  constexpr uint64_t kOnes = 0x0101010101010101ull;
  const uint64_t rest = kOnes * (0x7F - free.length);
  const uint8_t* lengths = trie_.lengths();
  for (uint32_t i = 0; i < n_words; i += 2, lengths += 64) {
    uint64_t longer = 0;
    for (uint32_t part = 0; part < 8; ++part) {
      uint64_t eight = 0;
      std::memcpy(&eight, lengths + 8 * part, 8);
      longer |= ((eight + rest) >> 7 & kOnes) << part;
    }
    mask[i] &= ~static_cast<uint32_t>(longer);
    if (i + 1 < n_words) {
      mask[i + 1] &= ~static_cast<uint32_t>(longer >> 32);
    }
  }
}

void Constraint::fillStops(uint32_t* mask) {
  const bool may_end = sets_.complete(now_);
  for (uint32_t i = 0; may_end && i < trie_.stopCount(); ++i) {
    mask[trie_.stops()[i] / 32] |= 1u << trie_.stops()[i] % 32;
  }
  if (extra_stop_ >= 0) {
    const uint32_t bit = 1u << extra_stop_ % 32;
    uint32_t& word = mask[extra_stop_ / 32];
    word = may_end ? word | bit : word & ~bit;
  }
}

void Constraint::fill(uint32_t* mask) {
  const FreeText free = findFreeText();
  if (free.kinds != 0) {
    fillKinds(free, mask);
  } else {
    std::memset(mask, 0, trie_.words() * sizeof(uint32_t));
  }
  if (sets_.goesOn(now_)) {
    // Skipped tokens consist of decided kinds, or contain a character that the grammar never uses.
    Walk(this, kinds_taken_ & ~free.kinds, mask).run();
  }
  fillStops(mask);
}

uint32_t Constraint::slotOf(Set set) {
  const uint16_t note = sets_.note(set);
  if (note != 0 && set_of_mask_[note - 1] == set) {
    return note - 1;
  }
  const uint32_t slot = next_mask_;
  next_mask_ = (next_mask_ + 1) % kKeptMasks;
  // Invalidates the old mask before writing, because writing may renumber all sets.
  set_of_mask_[slot] = StateSets::kFull;
  uint32_t* const mask = masks_ + size_t{slot} * trie_.words();
  fill(mask);
  if (sets_.steps().ended()) {
    std::memset(mask, 0, trie_.words() * sizeof(uint32_t));
    empty_mask_[slot] = true;
    return slot;  // invalid: rebuilt on the next request
  }
  uint32_t any = 0;
  for (uint32_t i = 0; i < trie_.words(); ++i) {
    any |= mask[i];
  }
  empty_mask_[slot] = any == 0;
  set_of_mask_[slot] = now_;
  sets_.note(now_) = static_cast<uint16_t>(slot + 1);
  return slot;
}

const uint32_t* Constraint::mask() {
  beginCall();
  return masks_ + size_t{slotOf(now_)} * trie_.words();
}

bool Constraint::stuck() {
  beginCall();
  return !ended() && empty_mask_[slotOf(now_)];
}

Status Constraint::spent() const {
  return !sets_.steps().ended()    ? kOk
         : sets_.steps().stopped() ? Status(ORIEL_ERROR_CANCELLED)
                                   : Status(ORIEL_ERROR_UNSUPPORTED);
}

// --- Advancing ------------------------------------------------------------------------------------

void Constraint::dropMasks() { std::fill_n(set_of_mask_, kKeptMasks, StateSets::kFull); }

// Keeps the text's set and another one.
void Constraint::makeRoom(Set* other) {
  Set sets[2] = {now_, other != nullptr ? *other : now_};
  dropMasks();
  sets_.keep(sets, 2);
  now_ = sets[0];
  if (other != nullptr) {
    *other = sets[1];
  }
}

Constraint::Set Constraint::stepFrom(Set set, uint8_t byte) {
  Set next = sets_.step(set, byte);
  if (next == StateSets::kFull) {
    makeRoom(&set);
    next = set == StateSets::kNothing ? set : sets_.step(set, byte);
  }
  return sets_.orNothing(next);
}

bool Constraint::isStop(int32_t id) const { return id == extra_stop_ || tokenizer_.isStop(id); }

bool Constraint::accept(int32_t id) {
  beginCall();
  if (id < 0 || static_cast<uint32_t>(id) >= trie_.vocabSize() || !in_force_ || stopped_) {
    return false;
  }
  if (isStop(id)) {
    if (!sets_.complete(now_)) {
      return false;
    }
    stopped_ = true;
    now_ = StateSets::kNothing;
    return true;
  }
  const TokenMark mark(id);
  Tokenizer::Piece piece = tokenizer_.piece(id, false);
  if (piece.bytes == 0 && tokenizer_.isControl(id)) {
    piece = {mark.bytes, TokenMark::kBytes};
  }
  if (piece.bytes == 0) {
    return false;
  }
  Set set = now_;
  for (size_t i = 0; i < piece.bytes && set != StateSets::kNothing; ++i) {
    set = stepFrom(set, static_cast<uint8_t>(piece.data[i]));
  }
  if (set == StateSets::kNothing || sets_.steps().ended()) {
    return false;
  }
  now_ = set;
  return true;
}

size_t Constraint::acceptText(const char* text, size_t bytes) {
  beginCall();
  if (!in_force_ || stopped_) {
    return 0;
  }
  for (size_t i = 0; i < bytes; ++i) {
    const Set next = stepFrom(now_, static_cast<uint8_t>(text[i]));
    if (next == StateSets::kNothing) {
      return i;
    }
    now_ = next;
  }
  return bytes;
}

bool Constraint::complete() { return stopped_ || (in_force_ && sets_.complete(now_)); }

bool Constraint::ended() { return stopped_ || (complete() && !sets_.goesOn(now_)); }

// --- Starting -------------------------------------------------------------------------------------

Constraint* Constraint::create(uint32_t n_vocab, const Tokenizer* tokenizer, const TokenTrie* trie,
                               Arena* arena, size_t bytes) {
  void* const room = arena->take<uint8_t>(sizeof(Constraint));
  uint8_t* const memory = arena->take<uint8_t>(bytes);
  uint32_t* const masks = arena->take<uint32_t>(kKeptMasks * maskWords(n_vocab));
  if (room == nullptr || memory == nullptr || masks == nullptr || trie == nullptr) {
    return nullptr;
  }
  Constraint* const constraint = new (room) Constraint(*tokenizer, *trie);
  constraint->memory_ = memory;
  constraint->memory_bytes_ = bytes;
  constraint->masks_ = masks;
  return constraint;
}

Status Constraint::compile(const Grammar& grammar, int32_t extra_stop, const Log& log) {
  release();
  const size_t capacity = memory_bytes_ - std::min(memory_bytes_, StateSets::kLeastBytes);
  if (const Status status = compileAutomaton(grammar, log, memory_, capacity, &automaton_);
      !status.ok()) {
    release();
    return status;
  }
  setExtraStop(extra_stop);
  if (!sets_.init(&automaton_, memory_ + automaton_.bytes, memory_bytes_ - automaton_.bytes)) {
    release();
    return log.fail(ORIEL_ERROR_INTERNAL, "a constraint's memory is too small: please report this");
  }
  findKindsTaken();
  in_force_ = true;
  stop_ = grammar.work()->stop();
  const uint64_t compiling = std::min(grammar.work()->steps(), kMostMaskSteps / 4 * 3);
  if (!tryOut(kMostMaskSteps - compiling)) {
    const bool stopped = sets_.steps().stopped();
    release();
    return stopped
               ? Status(ORIEL_ERROR_CANCELLED)
               : log.fail(ORIEL_ERROR_UNSUPPORTED,
                          "the grammar is so ambiguous that one token takes more than %llu steps: "
                          "let the alternatives of a rule begin with different characters",
                          static_cast<unsigned long long>(kMostMaskSteps));
  }
  // Drops the trial's sets.
  dropMasks();
  (void)sets_.init(&automaton_, memory_ + automaton_.bytes, memory_bytes_ - automaton_.bytes);
  restart();
  return kOk;
}

// Computes the mask at the most ambiguous text: each byte is chosen to keep the most readings. False: it needs more
// steps than are left. Longer texts are left to the call that reads them.
bool Constraint::tryOut(uint64_t most_steps) {
  sets_.begin({most_steps, stop_});
  goToStart();
  Set most = now_;
  for (uint32_t i = 0;
       i < kTriedBytes && now_ != StateSets::kNothing && sets_.steps().steps() < most_steps / 4;
       ++i) {
    if (i == kFirstTriedBytes && sets_.count(most) < kManyPlaces) {
      break;
    }
    Set best = StateSets::kNothing;
    for (uint32_t c = 0; c < automaton_.n_classes; ++c) {
      const Set next = sets_.step(now_, automaton_.byte_of[c]);
      if (next != StateSets::kFull && sets_.count(next) > sets_.count(best)) {
        best = next;
      }
    }
    now_ = best;
    most = sets_.count(now_) > sets_.count(most) ? now_ : most;
  }
  if (sets_.count(most) >= kManyPlaces && !sets_.steps().ended()) {
    now_ = most;
    sets_.begin({most_steps, stop_});
    (void)slotOf(now_);
  }
  return !sets_.steps().ended();
}

void Constraint::findKindsTaken() {
  kinds_taken_ = kindBit(TextKind::kOther);
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (automaton_.takes[byte]) {
      kinds_taken_ |= byte < 0x80 ? kindBit(kindOfAscii(static_cast<uint8_t>(byte)))
                                  : kindBit(TextKind::kBeyondAscii);
    }
  }
}

void Constraint::setExtraStop(int32_t id) {
  extra_stop_ = id >= 0 && static_cast<uint32_t>(id) < trie_.vocabSize() ? id : -1;
  dropMasks();
}

void Constraint::restart() {
  stopped_ = false;
  if (!in_force_) {
    return;
  }
  sets_.begin({});  // the trial already used this much, so the allocation cannot fail
  goToStart();
}

void Constraint::goToStart() {
  now_ = sets_.start();
  if (now_ == StateSets::kFull) {
    dropMasks();
    sets_.keep(nullptr, 0);
    now_ = sets_.start();
  }
}

void Constraint::forget() {
  wipe(masks_, uint64_t{kKeptMasks} * trie_.words() * sizeof(uint32_t));
  dropMasks();
  stopped_ = false;
  if (in_force_) {
    wipe(memory_ + automaton_.bytes, memory_bytes_ - automaton_.bytes);
    (void)sets_.init(&automaton_, memory_ + automaton_.bytes, memory_bytes_ - automaton_.bytes);
    restart();
  }
}

void Constraint::release() {
  in_force_ = false;
  stopped_ = false;
  automaton_ = Automaton();
  now_ = StateSets::kNothing;
  extra_stop_ = -1;
  stop_ = {};
  dropMasks();
  wipe(memory_, memory_bytes_);
}

}  // namespace oriel_internal
