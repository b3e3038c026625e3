// The positions of a text in an automaton: sets of states with stacks. Built on demand and cached while memory lasts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "grammar/automaton.h"
#include "grammar/expression.h"

namespace oriel_internal {

/// Characters of each kind that may follow a set (TextKind).
struct KindsFrom {
  uint16_t same = 0;  ///< kinds whose characters all lead to the set `to`
  uint16_t to = 0;
  uint16_t never = 0;  ///< kinds whose characters are all forbidden
};

/// Work is counted: after the last step every answer is kNothing, is not cached, and means nothing. init() provides all
/// memory. When it is full, the caller chooses the sets to keep (keep()); others are rebuilt on demand.
class StateSets {
 public:
  using Id = uint16_t;
  static constexpr Id kNothing = 0;        ///< no continuation is valid
  static constexpr Id kFull = UINT16_MAX;  ///< no room for the answer: call keep() and retry

  // Bounds that keep a step short. Beyond them some texts of the grammar are forbidden; the remaining texts are valid
  // and can be completed. Which texts are forbidden depends on the cache, so the same text may not be repeatable.
  static constexpr uint32_t kMostInSet = 1024;    ///< states with stacks; a schema has under ten
  static constexpr uint32_t kMostVisited = 2048;  ///< in one step, including empty edges
  /// One step needs at most half of the stacks that fit here.
  static constexpr size_t kLeastBytes = 512 * 1024;

  /// False: less memory than kLeastBytes.
  bool init(const Automaton* automaton, void* memory, size_t bytes);

  /// Starts a call of the caller with its own step limit. Unlimited before the first begin().
  void begin(const Steps& steps) { steps_ = steps; }
  const Steps& steps() const { return steps_; }
  /// The set at the start of a text; kFull.
  Id start();
  /// The set after a byte; kFull.
  Id step(Id set, uint8_t byte) {
    const Id known = next_[set * n_classes_ + automaton_->class_of[byte]];
    return known != kUnknown ? known : findNext(set, automaton_->class_of[byte]);
  }
  /// The text may end here.
  bool complete(Id set) const { return sets_[set].complete; }
  /// Places in it.
  uint32_t count(Id set) const { return sets_[set].count; }
  /// True if a byte may follow.
  bool goesOn(Id set) const { return sets_[set].count != 0; }
  /// False: no room.
  bool kindsFrom(Id set, KindsFrom* kinds);
  /// True if these bounds, or a lack of memory, have forbidden anything since init().
  bool bounded() const { return bounded_; }
  /// The set after a byte; kNothing if keep() made too little room for it.
  Id orNothing(Id next) {
    bounded_ = bounded_ || next == kFull;
    return next == kFull ? kNothing : next;
  }
  /// The user's number for a set; 0 initially and after keep().
  uint16_t& note(Id set) { return sets_[set].note; }

  /// Drops all sets except these and renumbers these in place. Sets that need more than half of the memory become
  /// kNothing; the first one never does.
  void keep(Id* sets, uint32_t count);

  /// For walks over transitions that step() has cached.
  const Id* knownNext(Id set) const { return next_ + set * n_classes_; }
  static constexpr Id kUnknown = UINT16_MAX - 1;
  uint32_t setCount() const { return n_sets_; }
  uint32_t mostSets() const { return most_sets_; }

 private:
  /// A state and its stack: state | stack << 16.
  using Place = uint32_t;
  /// Stacks share their lower parts. 0 is the empty stack. A stack reached in several ways returns to several places: a
  /// list of stacks of equal height, in order.
  struct Stack {
    uint16_t below = 0;
    uint16_t back_to = 0;  ///< state
    uint16_t rest = 0;     ///< other return places
    uint16_t same_hash = 0;
    uint16_t height = 0;
    uint16_t size = 0;  ///< largest number of stacks below
  };
  /// A routine entered in this step, once per stack height. Becomes a stack at the end of the step, since more return
  /// places may be found.
  struct Entry {
    uint16_t state = 0;
    uint16_t height = 0;
    uint16_t ways = 0;   ///< first return place, plus 1
    uint16_t stack = 0;  ///< the resulting stack
    bool left = false;   ///< the routine's end was reached
  };
  struct Way {
    Place back_to = 0;
    uint32_t next = 0;
  };
  struct Set {
    uint32_t first = 0;  ///< first of its places, which are sorted
    uint16_t count = 0;
    Id same_hash = 0;
    uint16_t note = 0;
    bool complete = false;
    bool kinds_known = false;
    KindsFrom kinds;
  };
  /// Bytes that may follow the lead byte of a character, as classes.
  struct Following {
    uint8_t count = 0;
    uint8_t classes[64] = {};
  };
  struct Lead {
    uint8_t class_of = 0;
    uint8_t shape = 0;  ///< index of Following for the second byte
    uint8_t more = 0;   ///< continuation bytes after the second
  };
  struct Seen {
    Place place = 0;
    uint32_t step = 0;
  };

  static constexpr uint32_t kSeenSlots = 4 * kMostVisited;
  static constexpr uint32_t kStackHashes = 4096;
  static constexpr uint32_t kFirstEntry = 1u << 15;  ///< stack numbers from here on are entries
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
  uint32_t* marks_ = nullptr;  ///< [most_stacks_] new numbers in keep()
  uint32_t most_sets_ = 0;
  uint32_t set_slots_ = 0;  ///< size of set_hashes_, a power of two
  uint32_t most_places_ = 0;
  uint32_t most_stacks_ = 0;
  uint32_t n_sets_ = 0;
  uint32_t n_places_ = 0;
  uint32_t n_stacks_ = 0;
  // Used within a single step.
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
  // For the automaton.
  Following kinds_[16];
  Following following_[5];
  Lead leads_[64];
  uint32_t n_leads_ = 0;
};

}  // namespace oriel_internal
