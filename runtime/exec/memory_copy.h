// What of a plan's arenas is one session's, and copying it to another.
#pragma once

#include "exec/executor.h"

namespace oriel_internal {

/// All that is of the session whose cache this is: its rings, with sinks if it has its own or `with_sinks`, and what is
/// kept of its last token where there are several sessions. Fills in as many as there is room for; *count says how many
/// there are.
void sessionPieces(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                   bool with_sinks, BufferRef* pieces, size_t capacity, size_t* count);

/// Which tokens are copied from one session to another.
struct TokenRange {
  uint64_t sinks = 0;  ///< the first `sinks` sinks, and
  uint64_t first = 0;  ///< those from here on,
  uint64_t end = 0;    ///< up to here
};

/// The parts to copy.
struct MemoryCopy {
  CacheShape from;
  CacheShape to;
  TokenRange tokens;
  bool sinks = false;       ///< sinks, too: sessions have their own
  uint32_t from_state = 0;  ///< slot of the state; it goes to slot 0
  /// Only memories without sinks, for a prefix.
  bool beside_sinks = false;
};

/// `room`: working memory for pieces, as many at a time as it holds.
Status copyMemory(const Plan& plan, const ModelDesc& model, const MemoryCopy& what, void* room,
                  size_t room_bytes, Executor* executor);

}  // namespace oriel_internal
