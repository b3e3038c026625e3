// The surroundings of a session: what its model has, and what its options ask for.
#pragma once

#include "base/descriptions.h"
#include "chat/chat_template.h"
#include "chat/turn.h"
#include "exec/device_share.h"
#include "exec/executor.h"
#include "exec/guard.h"
#include "exec/weight_source.h"
#include "plan/memory_layout.h"
#include "plan/plan.h"
#include "reply/forms.h"
#include "text/tokenizer.h"

namespace oriel_internal {

struct Prefix;
class TokenTrie;

/// Planned working memory for tokenising: ids on their way, the frame of a message, and one word of 1 KiB. A longer
/// word borrows from the allocator.
constexpr size_t kSessionWorkspaceBytes = 64 * 1024;

/// Retrieval, as a plan allows for it.
struct RecallSettings {
  uint32_t tokens = 0;           ///< sink slots for tokens that come back; 0: none do
  uint64_t file_bytes = 0;       ///< most bytes of a session's file
  uint64_t words = 0;            ///< entries of the index
  const char* folder = nullptr;  ///< of the file; outlives the session
};

/// All pointers outlive the session.
struct SessionContext {
  const ModelDesc* model = nullptr;
  const Plan* plan = nullptr;
  const Tokenizer* tokenizer = nullptr;
  ChatTemplate chat;
  ReplyForms forms = 0;       ///< in which replies think and call
  bool thinks = false;        ///< replies may begin with a thought
  TemplateSettings settings;  ///< its texts outlive the session
  LearnedTemplate learned;
  bool own_template = true;  ///< the model file's, not a given one
  Executor* executor = nullptr;
  DeviceShare* share = nullptr;  ///< with the model's other sessions; null: no others
  const oriel_allocator* allocator = nullptr;
  Guard* guard = nullptr;  ///< where calls rest between two steps; null: never
  Log log;
  uint64_t model_hash = 0;
  const char* model_name = "";  ///< for snapshots
  uint32_t index = 0;           ///< among the plan's sessions
  /// The text at the beginning of all sessions, once it is set. Null: the plan has no room for one.
  const Prefix* prefix = nullptr;
  /// Layers that write no memory are left out for tokens whose logits are not used.
  bool stops_early = true;
  /// A table of rows that stays in the file, and the file; null: none. Both are of the plan's model.
  const RowsOnFile* file_rows = nullptr;
  const WeightSource* source = nullptr;
  bool constraints = false;  ///< replies can follow a grammar; measuring needs no `trie`
  const TokenTrie* trie = nullptr;
  bool forgets_evicted =
      false;  ///< recurrent states are rebuilt from the visible tokens after an eviction
  bool follows_template =
      false;  ///< a reply is read again where the template writes it differently
  uint64_t transcript_bytes = 0;  ///< room for messages; 0: none are kept, for measuring only
  uint32_t drafts = 0;            ///< guesses that a step may verify; the plan has their rows
  RecallSettings recall;
  oriel_progress_fn progress = nullptr;  ///< as SessionSettings says
  void* progress_user = nullptr;

  /// Tokens of the shared prefix; 0: none.
  uint64_t prefixTokens() const;
  bool sharesDevice() const { return share != nullptr && share->several(); }
  DeviceTurn turn() const { return DeviceTurn(share, index); }
};

}  // namespace oriel_internal
