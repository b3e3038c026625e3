// A prefix: text that was processed once, which every session of a model begins with.
#pragma once

#include "base/arena.h"
#include "exec/snapshot.h"

namespace oriel_internal {

/// What the host knows of it. Its keys and values are the sinks that sessions share; what memories without sinks have of
/// it lies behind those of the sessions (sessionCache(cache, count)).
struct Prefix {
  uint32_t tokens = 0;  ///< 0: none was set
  uint32_t capacity = 0;
  bool trained = false;    ///< of a file with keys and values that no text has
  uint64_t sum = 0;        ///< trained: a checksum of those
  uint64_t chat_hash = 0;  ///< of the options of the session that made it
  int32_t* ids = nullptr;  ///< [capacity]: of all sessions' sinks
  Conversation at;         ///< of that session, behind its last token
  Transcript transcript;   ///< its messages

  /// Measuring: takes the same.
  static Prefix* create(uint32_t capacity, uint64_t transcript_bytes, Arena* arena);
  void forget();
};

}  // namespace oriel_internal
