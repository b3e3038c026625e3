// Takes over the fitting part of a snapshot into a session with other windows, batches or formats: selects the tokens,
// and converts their values to the session's formats. Rotations of keys do not change, because a token keeps its
// position.
#pragma once

#include "exec/snapshot_format.h"
#include "kv/turns.h"

namespace oriel_internal {

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

}  // namespace oriel_internal
