// A prefix: text that was processed once. Every session of a model begins with it.
#pragma once

#include "base/arena.h"
#include "exec/executor.h"
#include "exec/snapshot.h"
#include "gguf/gguf.h"

namespace oriel_internal {

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
