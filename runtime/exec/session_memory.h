// The memory of one session on the device: rings, sinks, recurrent states, and its part of a prefix.
//
// Its bytes are carried by exec/cache_bytes.h, for copies, snapshots and trims alike.
//
// It knows:
// - the slots of every token, and what each token sees: views and rotations of a step
// - which tokens are held, and their ids
// - how the session gets back to a position: at once, from a state, or by reading anew
// - how memory is copied and cleared
// It must never know:
// - how tokens are computed, in which steps, from where they come
// - sampling, text, messages
// - files: snapshots and retrieval have their own rooms
#pragma once

#include "exec/adapter_use.h"
#include "exec/conversation.h"
#include "exec/running_call.h"
#include "kv/rope.h"
#include "kv/state_slots.h"
#include "kv/token_ids.h"

namespace oriel_internal {

/// A step that ended before its head began leaves logits as they were: it was cancelled, experts could not be read, or
/// the driver had no memory to begin.
inline bool endedInBody(const Status& status) {
  return status.code() == ORIEL_ERROR_CANCELLED || status.code() == ORIEL_ERROR_IO ||
         status.code() == ORIEL_ERROR_OUT_OF_MEMORY;
}

/// How a session gets back to an earlier position.
struct WayBack {
  enum class How : uint8_t {
    kNone,       ///< what has to be seen there is gone
    kAtOnce,     ///< nothing is read again
    kFromState,  ///< the tokens after `from` are read again
    kAnew,       ///< all that is seen is read again, for states that have forgotten tokens
  };
  How how = How::kNone;
  uint64_t from = 0;   ///< the state to begin with, as a number of tokens
  bool holds = false;  ///< all that attention and convolutions see there is held
};

/// A text that an encoder reads whole, among others in a step.
struct TextOfStep {
  uint32_t first = 0;  ///< row of its first token
  uint32_t tokens = 0;
  uint32_t second = 0;  ///< its tokens from there on are of the second type
};

class SessionMemory {
 public:
  /// `rope_steps`: room for the phases of all tables. `states`: null where no layer keeps one.
  SessionMemory(const SessionContext& context, Conversation* at, RunningCall* call,
                const TokenIds& ids, StateSlots* states, AdapterUse* adapters, uint64_t* rope_steps,
                void* workspace, uint64_t first_position, bool whole_turns);

  // Records of the host's.

  TokenIds ids;
  StateSlots* const states;    ///< null where no layer keeps one
  AdapterUse* const adapters;  ///< null: the model has none
  RopePhases phases[kMaxRopes];
  const bool whole_turns;
  bool blank = false;  ///< nothing was written since all was overwritten with zeros

  // The conversation's share of the slots.

  const CacheShape& cache() const { return cache_; }
  /// After its sinks or retrieved tokens changed.
  void layOut();
  /// The conversation is another one, whose state, if any, lies in slot 0.
  void stand();

  // What tokens see.

  View viewOf(uint64_t t) const { return window_.view(t, floorOf(t)); }
  SessionView view() const;

  // What is held.

  HeldTokens held() const {
    return heldTokens(cache_, at_.position, at_.stored, at_.carried.held_from);
  }
  /// The ids of tokens [begin, end) are held.
  bool knows(uint64_t begin, uint64_t end) const;

  // Going back.

  WayBack wayBack(uint64_t position) const;
  /// Of a position to which there is none.
  Status refuse(uint64_t position) const;
  /// All that token `position` sees stands in sinks. Layers that see a part of the window have its sinks, too.
  bool onlySinksSee(uint64_t position) const;
  /// The latest state becomes a checkpoint; `start`: a message begins.
  void keepState(bool start);

  // Steps.

  void willStore(uint64_t end);
  /// Fills in the views and rotations of token t, row `row` of a block of a step after `begin` tokens.
  void fillToken(void* step, uint32_t row, uint64_t begin, uint64_t t, int32_t id,
                 uint32_t output) const;
  /// The same of token `place` of a text, number `index` in the step.
  void fillText(void* step, const TextOfStep& text, uint32_t index, uint32_t place,
                int32_t id) const;
  /// A step of these tokens is done; `kept`: nothing can have been begun after it.
  void commit(const int32_t* ids, uint32_t count, bool kept);

  // Bytes. Each needs the device's turn.

  /// Overwrites what this session has, with zeros. `written`: all was zeros before a text came. Texts are short, and caches
  /// may be long: only its pieces then.
  Status forget(bool written = false);
  /// What lies beside the sinks, and the state: of the prefix, where it goes to slot 0, or of this session.
  Status copyPrefix(bool to_prefix);
  /// Copies what `other` holds, whose ring is of this one's size, with its ids.
  Status copyFrom(const SessionMemory& other);

 private:
  uint64_t floorOf(uint64_t t) const;
  View viewOf(uint32_t view, uint64_t t, uint64_t floor, uint64_t begin) const;
  void fillRotations(uint64_t t, uint64_t index, float* tables) const;
  uint64_t baseOf(uint64_t t) const { return states != nullptr && t >= at_.base ? at_.base : 0; }
  bool reaches(uint64_t position) const;
  bool holdsWhatIsSeenAt(uint64_t position) const;
  bool usable(uint64_t tokens) const;
  uint64_t stateBefore(uint64_t position) const;

  const SessionContext& context_;
  Conversation& at_;
  RunningCall& call_;
  CacheShape cache_;      ///< the session's part of the plan's cache, as at_ shares it out
  SlidingWindow window_;  ///< the session's
  SlidingWindow windows_[kMaxViews];  ///< of each view; unused for states
  uint32_t first_slots_[kMaxViews];   ///< ring slots, or states, of the sessions before this one
  const RotationTables rotations_;
  void* workspace_;
};

}  // namespace oriel_internal
