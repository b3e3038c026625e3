// The pieces of a plan's arenas that belong to one session, and copies between sessions.
#pragma once

#include "exec/executor.h"

namespace oriel_internal {

/// Lists all memory of the session with this cache: its rings, its own sinks or `with_sinks`, and with several sessions
/// the logits and best tokens of its last token. Writes at most `capacity` pieces; *count is their total number.
void sessionPieces(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                   bool with_sinks, BufferRef* pieces, size_t capacity, size_t* count);

/// The tokens to copy from one session to another.
struct TokenRange {
  uint64_t sinks = 0;  ///< number of sinks to copy
  uint64_t first = 0;  ///< first further token
  uint64_t end = 0;    ///< end of the further tokens
};

/// The parts to copy.
struct MemoryCopy {
  CacheShape from;
  CacheShape to;
  TokenRange tokens;
  bool sinks = false;       ///< also copy sinks: sessions have their own
  uint32_t from_state = 0;  ///< source slot of the state; the destination is slot 0
  /// For a prefix: only memories without sinks.
  bool beside_sinks = false;
};

/// `room`: working memory for pieces. Copies as many at a time as fit.
Status copyMemory(const Plan& plan, const ModelDesc& model, const MemoryCopy& what, void* room,
                  size_t room_bytes, Executor* executor);

}  // namespace oriel_internal
