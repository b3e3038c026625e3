// The memory of one session on the device: rings, sinks, recurrent states, and its part of a prefix.
//
// It knows: the slots of every token, what each token sees, which tokens are held, how far the session can go back at
// once, how memory is copied and cleared.
// It must never know: how tokens are computed, sampling, text, messages.
#pragma once

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

class SessionMemory {
 public:
  /// `rope_steps`: room for the phases of all tables. `states`: null where no layer keeps one.
  SessionMemory(const SessionContext& context, Conversation* at, RunningCall* call,
                const TokenIds& ids, StateSlots* states, uint64_t* rope_steps, void* workspace,
                uint64_t first_position, bool whole_turns);

  const CacheShape& cache() const { return cache_; }
  TokenIds& ids() { return ids_; }
  const TokenIds& ids() const { return ids_; }
  StateSlots* states() { return states_; }
  const StateSlots* states() const { return states_; }
  bool wholeTurns() const { return whole_turns_; }
  const RopePhases* phases() const { return phases_; }
  uint64_t prefixTokens() const;

  // The conversation's share of the slots.

  /// After its sinks or retrieved tokens changed.
  void layOut();
  /// The conversation is another one, whose state, if any, lies in slot 0.
  void stand();
  /// Sinks of a conversation that begins.
  uint32_t ownSinks() const;

  // What tokens see.

  View viewOf(uint64_t t) const { return window_.view(t, floorOf(t)); }
  /// Fills in the views and rotations of token t, row `row` of a block of a step after `begin` tokens.
  void fillToken(void* step, uint32_t row, uint64_t begin, uint64_t t, int32_t id,
                 uint32_t output) const;
  SessionView view() const;
  /// The tokens from `begin` on that the latest token does not see.
  uint64_t evictedOf(uint64_t begin) const;

  // What is held.

  HeldTokens held() const {
    return heldTokens(cache_, at_.position, at_.stored, at_.carried.held_from);
  }
  /// The first token behind the sinks that all layers hold whose tokens are kept for retrieval.
  uint64_t heldByAll() const;
  /// The ids of tokens [begin, end) are held.
  bool knows(uint64_t begin, uint64_t end) const;
  /// Of the tokens that `other` holds.
  void takeIds(const SessionMemory& other);
  /// Ids from `first` on, up to the first that is not held: *count of them, copied where there is room for all. False:
  /// token `first` is gone, or still to come.
  bool copyHeld(uint64_t first, int32_t* ids, uint64_t capacity, uint64_t* count) const;
  void copyIds(uint64_t first, uint64_t count, int32_t* ids) const;

  // Going back.

  /// All that token `position` sees is held.
  bool holdsWhatIsSeenAt(uint64_t position) const;
  /// All that token `position` sees stands in sinks. Layers that see a part of the window have its sinks, too.
  bool onlySinksSee(uint64_t position) const;
  /// Going back there reads nothing again.
  bool canStandAt(uint64_t position) const;
  /// Going back there is possible, with tokens read again where states need it.
  bool canGoBack(uint64_t position) const;
  /// The state that leads to `position`, as a number of tokens; StateSlots::kNone: there is none.
  uint64_t stateBefore(uint64_t position) const;
  /// From what the state was made to begin with.
  bool canReadAnew(uint64_t position) const;
  /// The state after `tokens`, which stateBefore() found, is the latest.
  Status goBackToState(uint64_t tokens);
  Status refuse(uint64_t position) const;
  /// The latest state becomes a checkpoint; `start`: a message begins.
  void keepState(bool start);

  // Steps.

  void willStore(uint64_t end);
  /// A step of these tokens is done; `kept`: nothing can have been begun after it.
  void commit(const int32_t* ids, uint32_t count, bool kept);

  // Bytes. Each needs the device's turn.

  /// Overwrites what this session has, with zeros.
  Status forget();
  /// The same of a text. Where all was zeros before, only its pieces: texts are short, and caches may be long.
  Status forgetText(bool was_blank);
  bool isBlank() const { return blank_; }
  void setBlank(bool blank) { blank_ = blank; }
  /// Copies what the prefix has beside its sinks; its state goes to slot 0.
  Status takePrefix();
  Status copyToPrefix() const;
  /// Copies what `other` holds, whose ring is of this one's size.
  Status copyFrom(const SessionMemory& other);

 private:
  uint64_t floorOf(uint64_t t) const;
  View viewOf(uint32_t view, uint64_t t, uint64_t floor, uint64_t begin) const;
  void fillRotations(uint64_t t, uint64_t index, float* tables) const;
  uint64_t baseOf(uint64_t t) const { return states_ != nullptr && t >= at_.base ? at_.base : 0; }
  bool reaches(uint64_t position) const;
  bool usable(uint64_t tokens) const;

  const SessionContext& context_;
  Conversation& at_;
  RunningCall& call_;
  CacheShape cache_;      ///< the session's part of the plan's cache, as at_ shares it out
  SlidingWindow window_;  ///< the session's
  SlidingWindow windows_[kMaxViews];  ///< of each view; unused for states
  uint32_t first_slots_[kMaxViews];   ///< ring slots, or states, of the sessions before this one
  TokenIds ids_;
  StateSlots* states_;
  const RotationTables rotations_;
  RopePhases phases_[kMaxRopes];
  void* workspace_;
  const bool whole_turns_;
  bool blank_ = false;  ///< nothing was written since all was overwritten with zeros
};

}  // namespace oriel_internal
