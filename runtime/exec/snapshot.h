// A session as bytes: everything another session of the same model and plan needs to go on as if it were
// this one, to the bit.
//
//   SnapshotHeader | turn starts u64[n_turns] | ids of the tokens held i32[n_ids] | logits f32[n_vocab] if any |
//   used cache slots | checksum
//
// Little-endian. Ids: heldTokens() in order, sinks first. Cache slots: memory by memory (forEachMemory), keys then
// values, head by head: used sinks, used ring values, used ring scales; used columns; the state after the last token, but
// no checkpoints. Slots that no token will ever see are zeros, so that what was dropped or taken back makes no
// difference. A snapshot is refused unless version, model, layout, sizes and checksum all match.
#pragma once

#include "exec/executor.h"
#include "exec/sampler.h"
#include "kv/token_ids.h"
#include "kv/turns.h"

namespace oriel {

constexpr uint32_t kSnapshotVersion = 6;

/// Where a conversation stands between two messages: bits of SessionState::chat.
constexpr uint32_t kTurnOpen = 1;
constexpr uint32_t kSystemJoins = 2;
constexpr uint32_t kSwitchedThinking = 4;
/// Another bit: what is seen has yet to be read again (SessionStates::stale).
constexpr uint32_t kStaleState = 8;
constexpr uint32_t kClosed = 16;
constexpr uint32_t kHasSystem = 32;
constexpr uint32_t kByTemplate = 64;
constexpr uint32_t kAnsweredClosed = 128;
/// LastMessage in three bits: what the session ends with, and what its latest reply answers.
constexpr uint32_t kLastMessageShift = 8;
constexpr uint32_t kAnsweredShift = 11;
constexpr uint32_t kClosingUnknown = 1u << 14;

/// What a session is besides its cache.
struct SessionState {
  uint64_t position = 0;
  uint64_t stored = 0;  ///< as Session::stored_
  uint64_t first_position = 0;
  uint32_t has_logits = 0;
  uint32_t reply_open = 0;
  uint64_t reply_begin = 0;  ///< the latest reply's tokens: [begin, end)
  uint64_t reply_end = 0;
  uint32_t chat = 0;        ///< bits as above
  uint32_t since_base = 0;  ///< position - SessionStates::base + 1; 0: that is 0
  int32_t reply_stop =
      -1;  ///< the token that ended the latest reply, which is not part of the session
  uint32_t reserved = 0;
  SamplerState sampler;
};

struct SnapshotHeader {
  char magic[8];  ///< kSnapshotMagicBytes
  uint32_t version;
  uint32_t n_turns;
  uint64_t model_hash;
  uint64_t layout_hash;
  uint64_t total_bytes;  ///< of the snapshot
  SessionState state;
};

// `cache`: what of the plan's cache is the session's.

/// What a snapshot must agree on with the plan that restores it.
uint64_t layoutHash(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                    bool whole_turns);

struct SnapshotKey {
  uint64_t model_hash = 0;
  uint64_t layout_hash = 0;
};

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

/// Bytes of a snapshot of this state.
uint64_t snapshotBytes(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                       const SessionState& state, uint32_t n_turns);

/// Fills `out`, which has room for snapshotBytes().
Status writeSnapshot(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                     const SnapshotKey& key, const SessionState& state, const LiveSlots& live,
                     const TurnMarks& turns, const TokenIds& ids, Executor* executor, void* out);

constexpr size_t kSnapshotMagicBytes = 8;
/// Whether these are the first bytes of a snapshot, of any version.
bool isSnapshot(const char (&begin)[kSnapshotMagicBytes]);

/// Whether a snapshot of `total_bytes` may begin with these `bytes` bytes, as far as can be told without a model:
/// else ORIEL_ERROR_FORMAT with one line.
Status checkSnapshotHeader(const void* begin, uint64_t bytes, uint64_t total_bytes, const Log& log);

/// Checks everything first; ORIEL_ERROR_FORMAT with one line when anything is off, and nothing is touched.
/// After that only the device can fail (the cache is then undefined: reset the session).
Status readSnapshot(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                    const SnapshotKey& key, const void* data, uint64_t bytes, const Log& log,
                    Executor* executor, SessionState* state, TurnMarks* turns, TokenIds* ids);

}  // namespace oriel
