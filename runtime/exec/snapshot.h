// Sessions and prefixes as bytes.
#pragma once

#include "base/arena.h"
#include "exec/executor.h"
#include "exec/picture_store.h"
#include "exec/sampler.h"
#include "exec/session_context.h"
#include "exec/transcript.h"
#include "gguf/gguf.h"
#include "kv/memory.h"
#include "kv/token_ids.h"
#include "kv/window.h"

namespace oriel_internal {

// The format of a snapshot and its description, readable without the plan of the saved session.
//
//   SnapshotHeader | SnapshotMemory[n_memories] | hash of these | turn starts u64[n_turns] | ids of held tokens
//   i32[n_ids], then of retrieved tokens | logits f32[n_vocab] if any | used cache slots | transcript | pictures if any
//   (PictureStore::save()) | checksum of all
//
// Little-endian.
// - Ids: heldTokens() in order, sinks first.
// - Cache slots: memory by memory (forEachMemory), keys then values, head by head: used sinks, retrieved tokens, used
//   ring values, used ring scales; used columns; the state after the last token, without checkpoints. Slots that no
//   later token sees are zeros, so that dropped tokens do not change the bytes.
// - Transcript: in the format of Transcript.

constexpr uint32_t kSnapshotVersion = 11;
/// For a session with retrieved tokens.
constexpr uint32_t kSnapshotRecallVersion = 12;

/// For a session with pictures, with or without retrieved tokens.
constexpr uint32_t kSnapshotPicturesVersion = 13;

constexpr uint32_t versionOf(const SessionState& state) {
  return state.recalled != 0 ? kSnapshotRecallVersion : kSnapshotVersion;
}

constexpr size_t kSnapshotMagicBytes = 8;
constexpr char kSnapshotMagic[kSnapshotMagicBytes] = {'O', 'R', 'I', 'E', 'L', 'S', 'N', 'P'};

struct SnapshotHeader {
  char magic[kSnapshotMagicBytes];
  uint32_t version;
  uint32_t n_turns;
  uint64_t model_hash;
  uint64_t layout_hash;
  uint64_t total_bytes;  ///< size of the snapshot
  int64_t saved_at;      ///< seconds since 1970, UTC, if saved to a file; 0: unknown
  uint64_t transcript_bytes;
  uint32_t messages;  ///< messages in the transcript
  uint32_t dropped;
  uint32_t n_memories;
  uint32_t n_vocab;
  uint32_t n_layers;
  // The saved session:
  uint32_t sink_room;  ///< sink slots
  uint32_t window;
  uint32_t ring;
  uint32_t chunk_tokens;
  uint32_t whole_turns;
  uint8_t k_format;  ///< KvFormat, as requested
  uint8_t v_format;
  uint8_t state_format;  ///< StateFormat
  uint8_t keeps_states;
  char model[128];  ///< general.name; NUL-terminated, as are the other texts
  char architecture[64];
  char chat[64];  ///< name of the chat format
  SessionState state;
};

/// Sinks, window and ring of the saved session.
inline CacheShape shapeOf(const SnapshotHeader& header) {
  CacheShape shape;
  shape.sinks = header.sink_room;
  shape.setSinks(header.state.sinks);
  shape.window = header.window;
  shape.ring = header.ring;
  shape.recalled = header.state.recalled;
  return shape;
}

/// One memory of the saved session.
struct SnapshotMemory {
  uint32_t layer;
  uint8_t kind;        ///< MemoryKind
  uint8_t formats[2];  ///< KvFormat of each side
  uint8_t state;       ///< StateFormat
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t sinks;
  uint32_t window;
  uint32_t ring;
  uint32_t recalled;  ///< retrieved tokens after its sinks
};
/// Applies the formats and slots of a stored memory to the model's description of it.
void takeLayout(const SnapshotMemory& from, Memory* memory);

/// A complete snapshot: views of its parts in the bytes that it was opened from.
struct Snapshot {
  SnapshotHeader header;
  const uint8_t* memories = nullptr;
  const uint8_t* turns = nullptr;
  const uint8_t* ids = nullptr;
  uint64_t n_ids = 0;
  const uint8_t* logits = nullptr;
  const uint8_t* cache = nullptr;
  const uint8_t* transcript = nullptr;
  const uint8_t* pictures = nullptr;
  uint64_t picture_bytes = 0;  ///< 0: none

  SnapshotMemory memory(uint32_t index) const;
  CacheShape shape() const { return shapeOf(header); }
  HeldTokens held() const;
};

/// True if these are the first bytes of a snapshot, of any version.
bool isSnapshot(const char (&begin)[kSnapshotMagicBytes]);

/// Bytes of one side of a memory in a snapshot of a session after `position` tokens.
uint64_t sideBytesUsed(const Memory& memory, uint32_t side, uint64_t position);

/// Checks the first `bytes` bytes of a snapshot of `total_bytes`. ORIEL_ERROR_FORMAT with one log line if it is not a
/// snapshot, or has another version or size.
Status checkSnapshotHeader(const void* begin, uint64_t bytes, uint64_t total_bytes, const Log& log);

/// The snapshot's description from its first kDescriptionBytes. For another version only the version is known.
struct SnapshotDescription {
  bool readable = false;  ///< false: only `version` is set
  SnapshotHeader header;
};
Status describeSnapshot(const void* begin, uint64_t bytes, uint64_t total_bytes, const Log& log,
                        SnapshotDescription* out);
/// Largest size of the description at the beginning of a snapshot.
constexpr uint64_t kDescriptionBytes =
    sizeof(SnapshotHeader) + 2ull * kMaxLayers * sizeof(SnapshotMemory) + sizeof(uint64_t);

/// Checks everything that needs no model: sums, sizes, and all values used as an index or a position. The sums do not
/// prove the origin of the bytes.
Status openSnapshot(const void* data, uint64_t bytes, const Log& log, Snapshot* snapshot);

// Takes over the fitting part of a snapshot into a session with other windows, batches or formats: selects the tokens,
// and converts their values to the session's formats. Rotations of keys do not change, because a token keeps its
// position.

/// The parts of a snapshot with another layout that a session can take over.
struct Carrying {
  uint32_t sinks = 0;  ///< tokens for the session's sinks: fewer than their slots if some are lost
  CarriedOver state;
  uint64_t held = 0;     ///< tokens, including sinks
  uint64_t dropped = 0;  ///< further tokens in the snapshot
};

/// For a session of `cache` of the same model. It sees no token that was evicted in the saved session.
Carrying planCarrying(const Snapshot& snapshot, const TurnMarks& turns, const ModelDesc& model,
                      const CacheShape& cache, bool whole_turns);

/// One side of a memory in a snapshot of a session after `position` tokens.
struct StoredSide {
  Memory memory;
  uint32_t side = 0;
  uint64_t position = 0;
  uint32_t latent_dim = 0;  ///< MemoryKind::kLatent
  StateShape state;         ///< MemoryKind::kState

  uint64_t bytes() const { return sideBytesUsed(memory, side, position); }
};
StoredSide storedSide(const ModelDesc& model, const Memory& memory, uint32_t side,
                      uint64_t position);

/// Writes the side `to` of a session's memory from the snapshot's side. Besides the sinks it takes tokens from `first`
/// on, which the snapshot must hold; other slots become zeros. Copies values if both formats are equal, otherwise
/// rounds them once. *rounded: some values were rounded.
void carrySide(const StoredSide& from, const uint8_t* stored, uint64_t first, const StoredSide& to,
               uint8_t* out, bool* rounded);

// A session as bytes. A session of the same model and plan continues from them with identical bits. A session with
// another window, batch or format takes over the parts that fit.

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

// A prefix: text that was processed once. Every session of a model begins with it.

/// The host's record of a prefix. Its keys and values are in the sinks that sessions share. Its data in memories
/// without sinks follows the sessions' data (sessionCache(cache, count)).
struct Prefix {
  uint32_t tokens = 0;  ///< 0: no prefix was set
  uint32_t capacity = 0;
  bool trained = false;              ///< from a file with keys and values that match no text
  uint64_t sum = 0;                  ///< if trained: a checksum of the keys and values
  uint64_t chat_hash = 0;            ///< hash of the options of the session that made it
  int32_t* ids = nullptr;            ///< [capacity]: ids of the tokens in all sessions' sinks
  Conversation at;                   ///< state of that session after its last token
  Transcript transcript;             ///< its messages
  PictureStore* pictures = nullptr;  ///< its pictures; null: the model takes none

  /// When measuring, takes the same memory.
  static Prefix* create(uint32_t capacity, uint64_t transcript_bytes, const PictureInput* pictures,
                        uint32_t n_embd, Arena* arena);
  void forget();
};

// A prefix from a file with keys and values that match no text (docs/sessions.md, "A prefix from a file").

/// Distinguishes a model from others of its shape, independent of the quantisation of its matrices: a checksum of the
/// weights of its output norm (TensorRole::kOutputNorm), as float32. `file` must still have its header.
Status prefixFingerprint(const GgufFile& file, const GgufTensor& output_norm, const Log& log,
                         uint64_t* fingerprint);

/// Number of tokens in the file, for a plan with room for as many sinks. Checks nothing else. ORIEL_ERROR_FORMAT: not a
/// prefix file; ORIEL_ERROR_UNSUPPORTED: a later version. Allocates at most twice the bytes of the file's header.
Status countPrefixFile(const char* path, const oriel_allocator& allocator, const Log& log,
                       uint32_t* tokens);

/// The destination of a prefix. All members must outlive the call.
struct PrefixTarget {
  const ModelDesc& model;
  uint64_t fingerprint;  ///< of the model: prefixFingerprint()
  const Plan& plan;
  const CacheShape& cache;  ///< cache of any session that shares these sinks (sessionCache)
  const oriel_allocator& allocator;
  Executor* executor;
};

/// Writes keys and values into the sinks of the file's tokens, for every layer with its own keys and values. Fills in
/// *prefix with unknown ids, as after the closed turn of an assistant. Does not change chat_hash.
/// Before the first write all of the file except its values is compared with the model:
/// - ORIEL_ERROR_UNSUPPORTED: the model has more memory than keys and values in sinks (sliding windows, convolutions,
///   states, latents).
/// - ORIEL_ERROR_FORMAT: the file is for another model, or damaged. If only a value is NaN or infinite, the sinks are
///   undefined.
/// - ORIEL_ERROR_CONTEXT: there is room for fewer tokens.
/// - ORIEL_ERROR_IO: *prefix came from a file (its memory was lost), and this file has other keys or values.
///
/// On failure *prefix does not change. The keys are for positions 0, 1, ...: sessions with the prefix begin at position
/// 0. Allocates as countPrefixFile does, plus 64 KiB.
Status loadPrefixFile(const char* path, const PrefixTarget& target, const Log& log, Prefix* prefix);

}  // namespace oriel_internal
