// A prefix of keys and values that no text has, from a file (docs/sessions.md, "A prefix from a file").
#pragma once

#include "exec/executor.h"
#include "exec/prefix.h"
#include "gguf/gguf.h"

namespace oriel_internal {

/// What tells a model from others of its shape, and is the same however its matrices are quantised: a checksum of the
/// weights of its output norm (TensorRole::kOutputNorm), as float32. `file` still has its header.
Status prefixFingerprint(const GgufFile& file, const GgufTensor& output_norm, const Log& log,
                         uint64_t* fingerprint);

/// How many tokens the file stands for, for a plan with room for as many sinks. What else it holds is not checked.
/// ORIEL_ERROR_FORMAT for a file that is no prefix, ORIEL_ERROR_UNSUPPORTED for one of a later version. Borrows at most
/// twice the bytes of the file's header.
Status countPrefixFile(const char* path, const oriel_allocator& allocator, const Log& log,
                       uint32_t* tokens);

/// Where a prefix goes. All of it outlives the call.
struct PrefixTarget {
  const ModelDesc& model;
  uint64_t fingerprint;  ///< of the model: prefixFingerprint()
  const Plan& plan;
  const CacheShape&
      cache;  ///< of the session whose sinks these are (sessionCache); any of those that share them
  const oriel_allocator& allocator;
  Executor* executor;
};

/// Writes keys and values into the sinks of the file's tokens, of every layer that has keys and values of its own, and
/// makes *prefix what the host knows of them: ids that nobody knows, behind the closed turn of an assistant. Whose chat
/// options it has stays as it was. Before anything is written all of the file but its values is compared with the model:
///  - ORIEL_ERROR_UNSUPPORTED: the model remembers more than keys and values in sinks (sliding windows, convolutions,
///    states, latents).
///  - ORIEL_ERROR_FORMAT: the file is of another model, or damaged. It may be that only a value turns out to be no
///    number; then the sinks hold anything.
///  - ORIEL_ERROR_CONTEXT: there is room for fewer tokens.
///  - ORIEL_ERROR_IO: *prefix is of a file already (its memory was lost), and this one has other keys or values.
/// On failure *prefix is as it was. The keys are those of positions 0, 1, ...: sessions behind them begin at position 0.
/// Borrows as countPrefixFile, and 64 KiB.
Status loadPrefixFile(const char* path, const PrefixTarget& target, const Log& log, Prefix* prefix);

}  // namespace oriel_internal
