// What a snapshot looks like, and what it says of itself: enough to read it without the plan that made it.
//
//   SnapshotHeader | SnapshotMemory[n_memories] | hash of these | turn starts u64[n_turns] | ids of the tokens held
//   i32[n_ids], then of those that came back | logits f32[n_vocab] if any | used cache slots | transcript | checksum of all
//
// Little-endian. Ids: heldTokens() in order, sinks first. Cache slots: memory by memory (forEachMemory), keys then
// values, head by head: used sinks, what came back behind them, used ring values, used ring scales; used columns; the state after the last token, but
// no checkpoints. Slots that no token will ever see are zeros, so that what was dropped or taken back makes no
// difference. Transcript: as Transcript has it.
#pragma once

#include "exec/conversation.h"
#include "kv/memory.h"
#include "kv/token_ids.h"

namespace oriel_internal {

constexpr uint32_t kSnapshotVersion = 11;
/// Of a session where tokens have come back.
constexpr uint32_t kSnapshotRecallVersion = 12;

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
  uint64_t total_bytes;  ///< of the snapshot
  int64_t saved_at;      ///< seconds since 1970, UTC, of one in a file; 0: not known
  uint64_t transcript_bytes;
  uint32_t messages;  ///< of the transcript
  uint32_t dropped;
  uint32_t n_memories;
  uint32_t n_vocab;
  uint32_t n_layers;
  // Of the session that was saved.
  uint32_t sink_room;  ///< sinks that it has slots for
  uint32_t window;
  uint32_t ring;
  uint32_t chunk_tokens;
  uint32_t whole_turns;
  uint8_t k_format;  ///< KvFormat, as it was asked for
  uint8_t v_format;
  uint8_t state_format;  ///< StateFormat
  uint8_t keeps_states;
  char model[128];  ///< general.name; text with NUL at its end, as the others
  char architecture[64];
  char chat[64];  ///< name of the chat format
  SessionState state;
};

/// Sinks, window and ring of the session that was saved.
inline CacheShape shapeOf(const SnapshotHeader& header) {
  CacheShape shape;
  shape.sinks = header.sink_room;
  shape.setSinks(header.state.sinks);
  shape.window = header.window;
  shape.ring = header.ring;
  shape.recalled = header.state.recalled;
  return shape;
}

/// One memory of the session that was saved.
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
  uint32_t recalled;  ///< tokens behind its sinks that came back
};
/// Formats and slots of a stored memory, into what the model says of it.
void takeLayout(const SnapshotMemory& from, Memory* memory);

/// A snapshot that is whole: its parts, inside the bytes that it was opened from.
struct Snapshot {
  SnapshotHeader header;
  const uint8_t* memories = nullptr;
  const uint8_t* turns = nullptr;
  const uint8_t* ids = nullptr;
  uint64_t n_ids = 0;
  const uint8_t* logits = nullptr;
  const uint8_t* cache = nullptr;
  const uint8_t* transcript = nullptr;

  SnapshotMemory memory(uint32_t index) const;
  CacheShape shape() const { return shapeOf(header); }
  HeldTokens held() const;
};

/// Whether these are the first bytes of a snapshot, of any version.
bool isSnapshot(const char (&begin)[kSnapshotMagicBytes]);

/// Bytes of one side of a memory in a snapshot of a session behind `position` tokens.
uint64_t sideBytesUsed(const Memory& memory, uint32_t side, uint64_t position);

/// Of a header and what lies behind it, `bytes` bytes of a snapshot of `total_bytes` in all: ORIEL_ERROR_FORMAT with one
/// line for what is no snapshot, has another version or another size.
Status checkSnapshotHeader(const void* begin, uint64_t bytes, uint64_t total_bytes, const Log& log);

/// What it says of itself, from its first kDescriptionBytes; of another version no more than that.
struct SnapshotDescription {
  bool readable = false;  ///< else only `version`
  SnapshotHeader header;
};
Status describeSnapshot(const void* begin, uint64_t bytes, uint64_t total_bytes, const Log& log,
                        SnapshotDescription* out);
/// Bytes of a snapshot that describe it, at most.
constexpr uint64_t kDescriptionBytes =
    sizeof(SnapshotHeader) + 2ull * kMaxLayers * sizeof(SnapshotMemory) + sizeof(uint64_t);

/// Checks all that can be checked without a model: sums, sizes, and whatever is used as an index or a position. The sums
/// are no proof of who wrote the bytes.
Status openSnapshot(const void* data, uint64_t bytes, const Log& log, Snapshot* snapshot);

}  // namespace oriel_internal
