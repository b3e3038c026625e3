// A session as bytes. A session of the same model and plan continues from them with identical bits. A session with
// another window, batch or format takes over the parts that fit.
#pragma once

#include "exec/executor.h"
#include "exec/picture_store.h"
#include "exec/sampler.h"
#include "exec/snapshot_format.h"
#include "exec/transcript.h"
#include "kv/token_ids.h"
#include "kv/window.h"

namespace oriel_internal {

/// The session to save or to restore.
struct SnapshotOwner {
  const Plan* plan = nullptr;
  const ModelDesc* model = nullptr;
  CacheShape cache;  ///< the session's part of the plan's cache
  uint64_t model_hash = 0;
  char model_name[128] = "";  ///< including its adapters, if any
  char chat[64] = "";         ///< name of the chat format
  bool whole_turns = false;
  const oriel_allocator* allocator = nullptr;
  /// The prefix that it begins with and shares with others.
  const int32_t* prefix_ids = nullptr;
  uint32_t prefix_tokens = 0;
  uint64_t prefix_pictures = 0;  ///< PictureStore::sharedHash()
  uint32_t recall_tokens = 0;    ///< sink slots reserved for retrieved tokens
};

/// A hash of all properties that must be equal for a bit-exact restore.
uint64_t layoutHash(const SnapshotOwner& owner);

/// Places of a session's data on the device, if there are several possible places. Snapshots, and sessions after a
/// restore, use the first.
struct LiveSlots {
  uint32_t state = 0;    ///< slot of the state after the last token
  uint32_t logits = 0;   ///< row of the last token's logits, with one session
  uint32_t session = 0;  ///< index of the session's kept logits, with several sessions
};

/// Lists the pieces of the cache that steps have written on the way from an empty session to `stored` tokens. Writes at
/// most `capacity` pieces; *count is their total number.
void writtenPieces(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                   uint64_t stored, BufferRef* pieces, size_t capacity, size_t* count);

/// The saved data besides the cache.
struct SavedParts {
  const Conversation* at = nullptr;
  const TokenIds* ids = nullptr;
  const Transcript* transcript = nullptr;
  const PictureStore* pictures = nullptr;  ///< null: the model takes none
  bool hasPictures() const { return pictures != nullptr && !pictures->isEmpty(); }
};

uint64_t snapshotBytes(const SnapshotOwner& owner, const SavedParts& parts);

/// Fills `out`, which must have room for snapshotBytes(). `saved_at`: as in SnapshotHeader.
Status writeSnapshot(const SnapshotOwner& owner, const SavedParts& parts, const LiveSlots& live,
                     int64_t saved_at, Executor* executor, void* out);

/// The use of a snapshot for a session.
enum class SnapshotFit : uint8_t {
  kSame,     ///< the same layout: restores all bits
  kCarries,  ///< takes over the parts that fit
  kNot,      ///< only the transcript is usable
};
/// `refusal`: the reason why it is not kSame, with both values and the remedy; "" for kSame.
SnapshotFit fitOf(const SnapshotOwner& owner, const Snapshot& snapshot, char* refusal,
                  size_t capacity);

struct RestoredParts {
  ConversationCopy at;
  uint64_t held = 0;
  uint64_t dropped = 0;
  bool rounded = false;
};
/// Restores a snapshot that fits. ORIEL_ERROR_FORMAT or ORIEL_ERROR_OUT_OF_MEMORY with one log line: nothing has
/// changed. After that only the device can fail. Then the cache is undefined: reset the session.
Status restoreSnapshot(const SnapshotOwner& owner, const Snapshot& snapshot, SnapshotFit fit,
                       const Log& log, Executor* executor, RestoredParts* parts, TokenIds* ids,
                       Transcript* transcript, PictureStore* pictures = nullptr);

}  // namespace oriel_internal
