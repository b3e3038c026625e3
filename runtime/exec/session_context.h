// A conversation's state, and the surroundings of a session.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/descriptions.h"
#include "base/log.h"
#include "chat/chat_template.h"
#include "chat/turn.h"
#include "exec/device_share.h"
#include "exec/drafts.h"
#include "exec/executor.h"
#include "exec/expert_cache.h"
#include "exec/guard.h"
#include "exec/sampler.h"
#include "kv/window.h"
#include "plan/memory_layout.h"
#include "plan/plan.h"
#include "reply/forms.h"
#include "text/tokenizer.h"

namespace oriel_internal {

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

// The settings of a reply.

/// Resolved and checked. Only max_tokens has a special zero.
struct GenerateSettings {
  SamplerOptions sampling;
  uint32_t max_tokens = 0;  ///< 0: no limit
  uint32_t min_tokens = 0;  ///< minimum before stop tokens and stop texts count; at most max_tokens
  bool ignore_stop = false;
  /// Copied when the reply begins. UTF-8, as in StopTexts.
  const char* const* stop = nullptr;
  size_t n_stop = 0;
  bool logprobs = false;
  uint32_t top_logprobs = 0;        ///< at most Logprobs::kMostTop
  oriel_part_fn on_part = nullptr;  ///< null: the app does not need the reply's parts
  void* part_user = nullptr;
  bool value_parts = false;  ///< also for the values of a JSON answer
  oriel_step_logits_fn on_logits = nullptr;
  void* logits_user = nullptr;
  uint32_t max_thought_tokens = UINT32_MAX;  ///< as in ThoughtCap::start()
  float* step_logits =
      nullptr;  ///< room for the logits that on_logits changes, [n_vocab]; null without it
  bool reads_calls = true;  ///< false: text that looks like a call is plain text
  /// The reply must match the grammar compiled by Session::constrained(), after the trigger if there is one.
  bool constrained = false;
  const char* trigger = nullptr;  ///< copied when the reply begins
  size_t trigger_bytes = 0;       ///< at most kMostTriggerBytes
  bool trigger_again = false;     ///< as in ConstrainedStart::again
  DraftUse drafts = DraftUse::kAsItPays;
};

// The environment of a session: its model and its options.

struct Prefix;
class TokenTrie;

/// Working memory for tokenising, part of the plan: pending ids, the frame of a message, and one word of up to 1 KiB. A
/// longer word uses the allocator.
constexpr size_t kSessionWorkspaceBytes = 64 * 1024;

/// The plan's limits for retrieval.
struct RecallSettings {
  uint32_t tokens = 0;           ///< sink slots for retrieved tokens; 0: no retrieval
  uint64_t file_bytes = 0;       ///< largest size of a session's file
  uint64_t words = 0;            ///< entries of the index
  const char* folder = nullptr;  ///< folder of the file; must outlive the session
};

/// All pointers must outlive the session.
struct SessionContext {
  const ModelDesc* model = nullptr;
  const Plan* plan = nullptr;
  const Tokenizer* tokenizer = nullptr;
  ChatTemplate chat;
  ReplyForms forms = 0;       ///< forms of thoughts and tool calls
  bool thinks = false;        ///< replies may begin with a thought
  TemplateSettings settings;  ///< texts must outlive the session
  LearnedTemplate learned;
  bool own_template = true;  ///< from the model file, not from the app
  Executor* executor = nullptr;
  DeviceShare* share = nullptr;  ///< shared with the model's other sessions; null: no others
  const oriel_allocator* allocator = nullptr;
  Guard* guard = nullptr;  ///< calls rest here between two steps; null: never
  Log log;
  uint64_t model_hash = 0;
  const char* model_name = "";  ///< for snapshots
  uint32_t index = 0;           ///< among the plan's sessions
  /// The shared text at the beginning of all sessions, once it is set. Null: the plan has no room for one.
  const Prefix* prefix = nullptr;
  /// Tokens whose logits are not used skip the layers that write no memory.
  bool stops_early = true;
  /// A table of rows that stays in the file, and the file; null: none. Both come from the plan's model.
  const RowsOnFile* file_rows = nullptr;
  const WeightSource* source = nullptr;
  bool constraints = false;  ///< replies can follow a grammar; measuring needs no `trie`
  const TokenTrie* trie = nullptr;
  bool forgets_evicted =
      false;  ///< rebuild recurrent states from the visible tokens after evictions
  bool follows_template = false;  ///< read a reply again if the template writes it differently
  uint64_t transcript_bytes = 0;  ///< room for messages; 0: none are kept, only when measuring
  uint32_t drafts = 0;            ///< guesses per step to verify; the plan has their rows
  RecallSettings recall;
  double max_tokens_per_s = 0;           ///< as in SessionSettings
  double duty = 1;                       ///< above 0
  oriel_progress_fn progress = nullptr;  ///< as in SessionSettings
  void* progress_user = nullptr;

  /// Tokens of the shared prefix; 0: none.
  uint64_t prefixTokens() const;
  bool sharesDevice() const { return share != nullptr && share->several(); }
  DeviceTurn turn() const { return DeviceTurn(share, index); }
};

}  // namespace oriel_internal
