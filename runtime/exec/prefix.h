// A prefix: text that was processed once. Every session of a model begins with it.
#pragma once

#include "base/arena.h"
#include "exec/snapshot.h"

namespace oriel_internal {

/// The host's record of a prefix. Its keys and values are in the sinks that sessions share. Its data in memories
/// without sinks follows the sessions' data (sessionCache(cache, count)).
struct Prefix {
  uint32_t tokens = 0;  ///< 0: no prefix was set
  uint32_t capacity = 0;
  bool trained = false;    ///< from a file with keys and values that match no text
  uint64_t sum = 0;        ///< if trained: a checksum of the keys and values
  uint64_t chat_hash = 0;  ///< hash of the options of the session that made it
  int32_t* ids = nullptr;  ///< [capacity]: ids of the tokens in all sessions' sinks
  Conversation at;         ///< state of that session after its last token
  Transcript transcript;   ///< its messages

  /// When measuring, takes the same memory.
  static Prefix* create(uint32_t capacity, uint64_t transcript_bytes, Arena* arena);
  void forget();
};

}  // namespace oriel_internal
