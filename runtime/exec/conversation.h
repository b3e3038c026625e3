// The state of a conversation, as a value.
//
// A conversation is one Conversation, and two separate records that only grow or are cut at a position:
//   TokenIds    the ids of the tokens that the cache holds (kv/token_ids.h)
//   Transcript  the messages (exec/transcript.h)
//
// A call that fails assigns the copy that it took at its start. A fork assigns another's. A snapshot stores
// SessionState unchanged. So nothing of it is copied member by member, and no other object keeps a part of it.
//
// It knows:
// - positions: tokens committed, slots that count as written, where states begin
// - turns and marks
// - what the window shows: sinks, retrieved tokens, limits that came with a snapshot
// - the sampler's history
// It must never know:
// - where bytes lie on a device, and which ids they have
// - a template, a message, a token's text
// - the running step, call or reply
#pragma once

#include <algorithm>

#include "exec/sampler.h"
#include "kv/bookmarks.h"
#include "kv/turns.h"

namespace oriel_internal {

/// Limits of a conversation that came from a session with another window: it holds less than its ring could.
struct CarriedOver {
  uint64_t seen_from = 0;  ///< no token from here on sees earlier ones, but the sinks
  uint64_t held_from = 0;  ///< earlier tokens are not held, but the sinks
  uint64_t least = 0;      ///< the earliest position to go back to, but the sinks
};

/// The part of a conversation that a snapshot stores unchanged. No gaps between members.
struct SessionState {
  uint64_t position = 0;  ///< tokens committed
  /// Tokens whose slots count as written, at least `position`. It is more after going back, after a failed step, and
  /// where the device may have begun the next token. Older contents of these slots are gone.
  uint64_t stored = 0;
  uint64_t first_position = 0;  ///< RoPE position of the first token
  /// Recurrent states hold no tokens before it but the sinks, and no token from here on sees those. 0: none was forgotten.
  uint64_t base = 0;
  uint32_t has_logits = 0;  ///< 1: the logits of the last token are at hand
  uint32_t stale =
      0;  ///< 1: the recurrent state is of no use until the visible tokens were read again
  uint32_t sinks = 0;     ///< first tokens that every token sees
  uint32_t recalled = 0;  ///< retrieved tokens in the slots after the sinks
  CarriedOver carried;
  SamplerState sampler;
};

/// Copy, restore and compare it as a whole.
struct Conversation : SessionState {
  TurnMarks turns;
  Bookmarks marks;
  int32_t unfinished = -1;     ///< a token that was shown and whose step the device lost; -1: none
  uint32_t prompt_tokens = 0;  ///< read since the latest reply
  double prompt_ms = 0;        ///< that reading them took

  /// An empty conversation with room for `sinks` sinks.
  static Conversation empty(uint64_t first_position, uint32_t sinks) {
    Conversation begin;
    begin.first_position = first_position;
    begin.sinks = sinks;
    return begin;
  }
  /// Keeps only the first `end` tokens. The sampler's history stays.
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
