// A session as bytes: everything another session of the same model and plan needs to go on as if it were this one, to
// the bit; and what a session with another window, batch or format can take over of it.
#pragma once

#include "exec/executor.h"
#include "exec/sampler.h"
#include "exec/snapshot_format.h"
#include "exec/transcript.h"
#include "kv/token_ids.h"
#include "kv/turns.h"

namespace oriel_internal {

/// The session that is saved, or that restores.
struct SnapshotOwner {
  const Plan* plan = nullptr;
  const ModelDesc* model = nullptr;
  CacheShape cache;  ///< what of the plan's cache is the session's
  uint64_t model_hash = 0;
  char model_name[128] = "";  ///< with its adapters, where it has some
  char chat[64] = "";         ///< name of the chat format
  bool whole_turns = false;
  const oriel_allocator* allocator = nullptr;
  /// What it begins with, and shares with others.
  const int32_t* prefix_ids = nullptr;
  uint32_t prefix_tokens = 0;
  uint32_t recall_tokens = 0;  ///< of the sinks' room, what is for tokens that come back
};

/// What two sessions must agree on for a snapshot to go from one to the other to the bit.
uint64_t layoutHash(const SnapshotOwner& owner);

/// Where the device has what of a session is in one of several places; in a snapshot and after it was restored, the
/// first.
struct LiveSlots {
  uint32_t state = 0;    ///< slot of the state after the last token
  uint32_t logits = 0;   ///< row of the last token's logits, where there is one session
  uint32_t session = 0;  ///< whose logits are kept, where there are several
};

/// Pieces of the cache that steps have written which got to `stored` tokens from an empty session. Fills in as many as
/// there is room for; *count says how many there are.
void writtenPieces(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                   uint64_t stored, BufferRef* pieces, size_t capacity, size_t* count);

/// What is saved besides the cache.
struct SavedParts {
  const Conversation* at = nullptr;
  const TokenIds* ids = nullptr;
  const Transcript* transcript = nullptr;
};

uint64_t snapshotBytes(const SnapshotOwner& owner, const SavedParts& parts);

/// Fills `out`, which has room for snapshotBytes(). `saved_at` as in SnapshotHeader.
Status writeSnapshot(const SnapshotOwner& owner, const SavedParts& parts, const LiveSlots& live,
                     int64_t saved_at, Executor* executor, void* out);

/// What can be done with a snapshot.
enum class SnapshotFit : uint8_t {
  kSame,     ///< the same layout: to the bit
  kCarries,  ///< what fits is carried over
  kNot,      ///< only its transcript is of use
};
/// `refusal`: why it is not kSame, both values and what to do; "" where it is.
SnapshotFit fitOf(const SnapshotOwner& owner, const Snapshot& snapshot, char* refusal,
                  size_t capacity);

struct RestoredParts {
  ConversationCopy at;
  uint64_t held = 0;
  uint64_t dropped = 0;
  bool rounded = false;
};
/// Of one that fits. ORIEL_ERROR_FORMAT or ORIEL_ERROR_OUT_OF_MEMORY with one line: nothing is touched. After that only
/// the device can fail (the cache is then undefined: reset the session).
Status restoreSnapshot(const SnapshotOwner& owner, const Snapshot& snapshot, SnapshotFit fit,
                       const Log& log, Executor* executor, RestoredParts* parts, TokenIds* ids,
                       Transcript* transcript);

}  // namespace oriel_internal
