// Where a text may be in an automaton: sets of states with their stacks, made as they are met and kept while there is
// room.
#pragma once

#include <cstddef>
#include <cstdint>

#include "grammar/automaton.h"
#include "grammar/work.h"

namespace oriel_internal {

/// Which of the characters of a kind lead on from a set (TextKind).
struct KindsFrom {
  uint16_t same = 0;  ///< kinds of which every character leads to the set `to`
  uint16_t to = 0;
  uint16_t never = 0;  ///< kinds of which none may come
};

/// Work is counted: once the steps have ended, every answer is kNothing, is not kept, and says nothing about the text.
/// All memory is given by init(); when it is full, the caller says which sets it goes on with (keep()), and the others
/// are made again when they are met again.
class StateSets {
 public:
  using Id = uint16_t;
  static constexpr Id kNothing = 0;        ///< no text goes on like this
  static constexpr Id kFull = UINT16_MAX;  ///< no room for the answer: keep(), and ask again

  // Bounds that keep one step short. Beyond them texts are forbidden that the grammar has; what is left is right, and
  // can be completed. Which they are depends on what has been met before, so that the same text may not come again.
  static constexpr uint32_t kMostInSet =
      1024;  ///< states with their stacks; a schema has under ten
  static constexpr uint32_t kMostVisited =
      2048;  ///< of one step, those that lead on without a byte included
  /// Half of the stacks that this has room for are enough for a step.
  static constexpr size_t kLeastBytes = 512 * 1024;

  /// False: less memory than kLeastBytes.
  bool init(const Automaton* automaton, void* memory, size_t bytes);

  /// A call of the caller begins, which may take these steps. Before that there is no limit.
  void begin(const Steps& steps) { steps_ = steps; }
  const Steps& steps() const { return steps_; }
  /// The set at the beginning of a text; kFull.
  Id start();
  /// The set behind a byte; kFull.
  Id step(Id set, uint8_t byte) {
    const Id known = next_[set * n_classes_ + automaton_->class_of[byte]];
    return known != kUnknown ? known : findNext(set, automaton_->class_of[byte]);
  }
  /// The text may end here.
  bool complete(Id set) const { return sets_[set].complete; }
  /// Places in it.
  uint32_t count(Id set) const { return sets_[set].count; }
  /// Something may follow.
  bool goesOn(Id set) const { return sets_[set].count != 0; }
  /// False: no room.
  bool kindsFrom(Id set, KindsFrom* kinds);
  /// Since init() these bounds, or a lack of memory, have forbidden something.
  bool bounded() const { return bounded_; }
  /// The set behind a byte; where there was no room for it even behind keep(), kNothing.
  Id orNothing(Id next) {
    bounded_ = bounded_ || next == kFull;
    return next == kFull ? kNothing : next;
  }
  /// A number that the user keeps with a set, 0 at first and again after keep().
  uint16_t& note(Id set) { return sets_[set].note; }

  /// Forgets all sets but these and gives them new numbers, in place. Those that would take more than half of the
  /// memory become kNothing; the first never does.
  void keep(Id* sets, uint32_t count);

  /// For who walks with what step() knows already.
  const Id* knownNext(Id set) const { return next_ + set * n_classes_; }
  static constexpr Id kUnknown = UINT16_MAX - 1;
  uint32_t setCount() const { return n_sets_; }
  uint32_t mostSets() const { return most_sets_; }

 private:
  /// A state and the stack above which it is: state | stack << 16.
  using Place = uint32_t;
  /// Stacks share what is below them. 0 is the empty one. One that was reached in several ways comes back to as many
  /// places: a list of stacks of the same height, in order.
  struct Stack {
    uint16_t below = 0;
    uint16_t back_to = 0;  ///< state
    uint16_t rest = 0;     ///< the other ways
    uint16_t same_hash = 0;
    uint16_t height = 0;
    uint16_t size = 0;  ///< stacks that it has, at most
  };
  /// What one step enters, once for each height: a stack that is not done, as the step may find more ways to come back.
  struct Entry {
    uint16_t state = 0;
    uint16_t height = 0;
    uint16_t ways = 0;   ///< the first one, plus 1
    uint16_t stack = 0;  ///< that it has become
    bool left = false;   ///< its end was reached
  };
  struct Way {
    Place back_to = 0;
    uint32_t next = 0;
  };
  struct Set {
    uint32_t first = 0;  ///< of its places, which are sorted
    uint16_t count = 0;
    Id same_hash = 0;
    uint16_t note = 0;
    bool complete = false;
    bool kinds_known = false;
    KindsFrom kinds;
  };
  /// Bytes that may follow the first of a character, as classes.
  struct Following {
    uint8_t count = 0;
    uint8_t classes[64] = {};
  };
  struct Lead {
    uint8_t class_of = 0;
    uint8_t shape = 0;  ///< Following of the second byte
    uint8_t more = 0;   ///< bytes behind the second
  };
  struct Seen {
    Place place = 0;
    uint32_t step = 0;
  };

  static constexpr uint32_t kSeenSlots = 4 * kMostVisited;
  static constexpr uint32_t kStackHashes = 4096;
  static constexpr uint32_t kFirstEntry = 1u << 15;  ///< stacks from here on are entries
  static constexpr uint32_t kMostEntries = 1024;
  static constexpr uint32_t kMostWays = 2048;

  void empty();
  Id findNext(Id set, uint32_t byte_class);
  void addAll(uint32_t state, uint32_t stack);
  void visit(Place place);
  void comeBack(uint32_t stack);
  void enter(uint32_t state, uint32_t stack, uint32_t back_to);
  bool push(Place back_to, uint32_t rest, uint32_t* pushed);
  uint32_t heightOf(uint32_t stack) const {
    return stack >= kFirstEntry ? entries_[stack - kFirstEntry].height : stacks_[stack].height;
  }
  static uint32_t slotOf(const Stack& stack);
  bool settle();
  bool settle(Entry* entry);
  void beginStep();
  bool isNew(Place place);
  void want(uint32_t state, uint32_t stack);
  Id intern();
  void cutToStacks();
  uint32_t mark(uint32_t stack);
  void keepStacks();
  void keepSets(Id* sets, uint32_t count);
  void clearHashes();
  static uint32_t hashOf(const Place* places, uint32_t count, bool complete);
  void findKindClasses();
  bool follow(Id set, const Following& following, uint32_t more, Id* to, bool* one);
  bool beyondAscii(Id set, Id* to, bool* one);

  const Automaton* automaton_ = nullptr;
  uint32_t n_classes_ = 0;
  // The arenas.
  Set* sets_ = nullptr;
  Id* next_ = nullptr;  ///< [most_sets_][n_classes_]
  Id* set_hashes_ = nullptr;
  Place* places_ = nullptr;
  Stack* stacks_ = nullptr;
  uint16_t* stack_hashes_ = nullptr;
  uint32_t* marks_ = nullptr;  ///< [most_stacks_] keep(): new numbers
  uint32_t most_sets_ = 0;
  uint32_t set_slots_ = 0;  ///< of set_hashes_, a power of two
  uint32_t most_places_ = 0;
  uint32_t most_stacks_ = 0;
  uint32_t n_sets_ = 0;
  uint32_t n_places_ = 0;
  uint32_t n_stacks_ = 0;
  // Of one step.
  Seen* seen_ = nullptr;
  Place* found_ = nullptr;
  Place* waiting_ = nullptr;
  Entry* entries_ = nullptr;
  Way* ways_ = nullptr;
  uint32_t step_ = 0;
  uint32_t n_seen_ = 0;
  uint32_t n_found_ = 0;
  uint32_t n_waiting_ = 0;
  uint32_t n_entries_ = 0;
  uint32_t n_ways_ = 0;
  bool found_end_ = false;
  bool bounded_ = false;  ///< of all steps
  Steps steps_;
  // Of the automaton.
  Following kinds_[16];
  Following following_[5];
  Lead leads_[64];
  uint32_t n_leads_ = 0;
};

}  // namespace oriel_internal
