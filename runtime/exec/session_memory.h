// The memory of one session on the device: rings, sinks, recurrent states, and its part of a prefix.
//
// exec/cache_bytes.h moves its bytes, for copies, snapshots and trims.
//
// It knows:
// - the slots of every token, and the tokens visible to it: views and rotations of a step
// - the held tokens and their ids
// - how the session gets back to a position: at once, from a state, or by reading again
// - how memory is copied and cleared
// It must never know:
// - how tokens are computed, in which steps, from which source
// - sampling, text, messages
// - files: snapshots and retrieval are elsewhere
#pragma once

#include "exec/executor.h"
#include "exec/picture_store.h"
#include "exec/running_call.h"
#include "exec/session_context.h"
#include "kv/memory.h"
#include "kv/token_ids.h"

namespace oriel_internal {

/// True if the step ended before its head began, so that the logits are unchanged. Causes: a cancel, experts that could
/// not be read, or a driver without memory to begin.
inline bool endedInBody(const Status& status) {
  return status.code() == ORIEL_ERROR_CANCELLED || status.code() == ORIEL_ERROR_IO ||
         status.code() == ORIEL_ERROR_OUT_OF_MEMORY;
}

/// How a session gets back to an earlier position.
struct WayBack {
  enum class How : uint8_t {
    kNone,       ///< tokens that must be visible there are gone
    kAtOnce,     ///< reads no tokens
    kFromState,  ///< reads the tokens after `from` again
    kAnew,       ///< reads all visible tokens again, because states have forgotten some
  };
  How how = How::kNone;
  uint64_t from = 0;   ///< number of tokens in the initial state
  bool holds = false;  ///< the session holds all tokens that attention and convolutions need there
};

/// A text in an encoder's step, which can hold several whole texts.
struct TextOfStep {
  uint32_t first = 0;  ///< row of its first token
  uint32_t tokens = 0;
  uint32_t second = 0;  ///< tokens from this one on are of the second type
};

class SessionMemory {
 public:
  /// `rope_steps`: room for the phases of all tables. `states`: null if no layer has a state. `pictures`: null if the
  /// model takes none.
  SessionMemory(const SessionContext& context, Conversation* at, RunningCall* call,
                const TokenIds& ids, StateSlots* states, AdapterUse* adapters,
                PictureStore* pictures, uint64_t* rope_steps, void* workspace,
                uint64_t first_position, bool whole_turns);

  // Host records.

  TokenIds ids;
  StateSlots* const states;      ///< null if no layer has a state
  AdapterUse* const adapters;    ///< null: the model has none
  PictureStore* const pictures;  ///< null: the model takes none
  RopePhases phases[kMaxRopes];
  const bool whole_turns;
  bool blank = false;  ///< not written since it was overwritten with zeros

  // The conversation's share of the slots.

  const CacheShape& cache() const { return cache_; }
  /// Call after the sinks or the retrieved tokens changed.
  void layOut();
  /// Call after the conversation was replaced. Its state, if any, is in slot 0.
  void stand();

  // Visible tokens.

  View viewOf(uint64_t t) const { return window_.view(t, floorOf(t)); }
  SessionView view() const;

  // Held tokens.

  HeldTokens held() const {
    return heldTokens(cache_, at_.position, at_.stored, at_.carried.held_from);
  }
  /// True if the ids of tokens [begin, end) are held, and the rows of pictures among them.
  bool knows(uint64_t begin, uint64_t end) const;
  /// Position of token t in time, from the conversation's first token on.
  uint64_t positionOf(uint64_t t) const {
    return pictures != nullptr && pictures->input().in_dimensions ? pictures->positionOf(t).of[0]
                                                                  : t;
  }
  /// True if token t can be read again: its id is known, and its row if it is a picture's.
  bool canRead(uint64_t t) const;

  // Going back.

  WayBack wayBack(uint64_t position) const;
  /// The error for a position that the session cannot get back to.
  Status refuse(uint64_t position) const;
  /// True if all tokens visible at `position` are in sinks. Layers with a smaller window have the same sinks.
  bool onlySinksSee(uint64_t position) const;
  /// Makes the latest state a checkpoint; `start`: a message begins.
  void keepState(bool start);

  // Steps.

  /// A step may write up to token `end`, and the states after `state_rows` of its tokens.
  void willStore(uint64_t end, uint32_t state_rows = 1);
  /// Fills in the views and rotations of token t at row `row` of a step block, for a step after `begin` tokens. The
  /// token also sees the next `ahead` tokens of the step, in layers with a window of their own.
  void fillToken(void* step, uint32_t row, uint64_t begin, uint64_t t, int32_t id, uint32_t output,
                 uint32_t ahead = 0) const;
  /// The same for token `place` of a text, number `index` in the step.
  void fillText(void* step, const TextOfStep& text, uint32_t index, uint32_t place,
                int32_t id) const;
  /// Records a completed step with these tokens; `kept`: no further step can have begun.
  void commit(const int32_t* ids, uint32_t count, bool kept);

  // Bytes. Each call needs the device's turn.

  /// Overwrites the session's memory with zeros. `written`: clear only the pieces that a text has written since all was
  /// zero. That is faster for a short text in a long cache.
  Status forget(bool written = false);
  /// Copies the memory outside the sinks, and the state. Source and destination are the prefix, whose state is in slot
  /// 0, and this session.
  Status copyPrefix(bool to_prefix);
  /// Copies the contents and ids of `other`, whose ring has the same size.
  Status copyFrom(const SessionMemory& other);

 private:
  uint64_t floorOf(uint64_t t) const;
  View viewOf(uint32_t view, uint64_t t, uint64_t floor, uint64_t begin) const;
  void fillRotations(uint64_t t, uint64_t index, float* tables) const;
  void fillDimensions(uint64_t t, uint64_t index, float* tables) const;
  uint64_t baseOf(uint64_t t) const { return states != nullptr && t >= at_.base ? at_.base : 0; }
  bool reaches(uint64_t position) const;
  bool holdsWhatIsSeenAt(uint64_t position) const;
  bool usable(uint64_t tokens) const;
  uint64_t stateBefore(uint64_t position) const;

  const SessionContext& context_;
  Conversation& at_;
  RunningCall& call_;
  CacheShape cache_;                  ///< the session's part of the plan's cache, as divided by at_
  SlidingWindow window_;              ///< the session's
  SlidingWindow windows_[kMaxViews];  ///< for each view; unused for states
  uint32_t first_slots_[kMaxViews];   ///< ring slots, or states, of all sessions before this one
  const RotationTables rotations_;
  void* workspace_;
};

}  // namespace oriel_internal
