// The state of a conversation, as a value.
//
// A conversation is one Conversation, and two separate records that only grow or are cut at a position:
//   TokenIds    the ids of the tokens that the cache holds (kv/token_ids.h)
//   Transcript  the messages (exec/transcript.h)
//
// A call that fails assigns the copy from its start. A fork assigns the other session's value. A snapshot stores
// SessionState unchanged. Therefore no code copies single members, and no other object keeps a part of it.
//
// It knows:
// - positions: tokens committed, slots that count as written, the beginning of states
// - turns and marks
// - the contents of the window: sinks, retrieved tokens, limits from a snapshot
// - the sampler's history
// It must never know:
// - places of bytes on a device, and their ids
// - a template, a message, a token's text
// - the running step, call or reply
#pragma once

#include <algorithm>

#include "exec/sampler.h"
#include "kv/window.h"

namespace oriel_internal {

/// Limits of a conversation that came from a session with another window: it holds fewer tokens than its ring could.
struct CarriedOver {
  uint64_t seen_from = 0;  ///< tokens from here on see no earlier ones except the sinks
  uint64_t held_from = 0;  ///< earlier tokens are not held, except the sinks
  uint64_t least = 0;      ///< earliest position to go back to, except within the sinks
};

/// The part of a conversation that a snapshot stores unchanged. No gaps between members.
struct SessionState {
  uint64_t position = 0;  ///< tokens committed
  /// Tokens whose slots count as written, at least `position`. Larger after going back, after a failed step, and if the
  /// device may have begun the next token. The older contents of these slots are lost.
  uint64_t stored = 0;
  uint64_t first_position = 0;  ///< RoPE position of the first token
  /// Recurrent states hold no earlier tokens except the sinks. Tokens from here on do not see the earlier ones. 0: no
  /// token was forgotten.
  uint64_t base = 0;
  uint32_t has_logits = 0;  ///< 1: the logits of the last token are available
  uint16_t stale =
      0;  ///< 1: the recurrent state is invalid until the visible tokens are read again
  /// Retrieved tokens minus their positions: rows of a picture share positions (M-RoPE).
  uint16_t recalled_shared = 0;
  uint32_t sinks = 0;     ///< first tokens, visible to all tokens
  uint32_t recalled = 0;  ///< retrieved tokens in the slots after the sinks
  CarriedOver carried;
  SamplerState sampler;
};

/// Copy, restore and compare it as a whole.
struct Conversation : SessionState {
  TurnMarks turns;
  Bookmarks marks;
  /// a token that was shown and whose step was lost with the device; -1: none
  int32_t unfinished = -1;
  uint32_t prompt_tokens = 0;  ///< read since the latest reply
  double prompt_ms = 0;        ///< time to read them

  /// An empty conversation with room for `sinks` sinks.
  static Conversation empty(uint64_t first_position, uint32_t sinks) {
    Conversation begin;
    begin.first_position = first_position;
    begin.sinks = sinks;
    return begin;
  }
  /// Keeps only the first `end` tokens. The sampler's history does not change.
  void truncate(uint64_t end) {
    position = end;
    base = end < base ? 0 : base;
    unfinished = -1;
    has_logits = 0;
    turns.truncate(end);
    marks.truncate(end);
  }
};

using ConversationCopy = WipedCopy<Conversation>;

}  // namespace oriel_internal
