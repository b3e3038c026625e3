// What of a snapshot fits a session with other windows, batches or formats: which tokens, and their values in the
// session's own formats. Rotations of keys stay: a token keeps its position.
#pragma once

#include "exec/snapshot_format.h"
#include "kv/turns.h"

namespace oriel_internal {

/// The parts of a snapshot with another layout that a session can take.
struct Carrying {
  uint32_t sinks =
      0;  ///< tokens that become its sinks: fewer than it has room for, where some are gone
  CarriedOver state;
  uint64_t held = 0;     ///< tokens, sinks included
  uint64_t dropped = 0;  ///< that the snapshot has besides
};

/// For a session of `cache` of the same model. It sees no token that the saved one had ceased to see.
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

/// Writes the side of a session's memory, `to`, from that of a snapshot. Of tokens but the sinks those from `first` on,
/// which the snapshot has; slots of others become zeros. Values are copied where both have them in the same format, else
/// they are rounded once. *rounded: some were.
void carrySide(const StoredSide& from, const uint8_t* stored, uint64_t first, const StoredSide& to,
               uint8_t* out, bool* rounded);

}  // namespace oriel_internal
