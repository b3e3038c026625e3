// Places of a session's bytes in the cache, and their transfer to and from the device. There are two forms:
//
//   memory copy, snapshot  head by head: sinks, ring, scales, in the cache's layout. Forks and prefixes are copied on
//                          the device (exec/cache_bytes.h), snapshots and the file of a trim through the upload ring.
//   retrieval's file       block by block (exec/recall_file.h): 16 tokens of all heads together. In the other form
//                          each block and turn would be in as many places as there are heads and layers.
//
// It knows: rows of sinks, rings and scales, pieces within half the upload ring.
// It must never know: the purpose of the bytes, files, ids, messages.
#pragma once

#include <algorithm>
#include <cstring>

#include "exec/executor.h"

namespace oriel_internal {

/// Bytes of a vector in a ring, and of its scales.
inline uint64_t valueBytes(KvFormat format, uint32_t head_dim) {
  return 4ull * kvValueWords(format, head_dim);
}
inline uint64_t scaleBytes(KvFormat format, uint32_t head_dim) {
  return format == KvFormat::kF16 ? 0 : 2ull * kvGroups(head_dim);
}

/// Places of the vectors of a side: bytes before the first, and bytes per vector.
struct SlotRows {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  BufferRef of(const BufferRef& side, uint64_t row, uint64_t count) const {
    return side.part(begin + row * bytes, count * bytes);
  }
};
SlotRows sinkRows(const CacheShape& shape);
SlotRows ringRows(KvFormat format, const CacheShape& shape);
SlotRows scaleRows(KvFormat format, const CacheShape& shape);
/// For columns and states.
inline SlotRows wordRows(const CacheShape& shape) { return {0, 4ull * shape.head_dim}; }

/// Place of the logits of a session's last token between two calls.
BufferRef logitsPlace(const Plan& plan, uint32_t session);

/// Writes a part of the device's memory: calls fill(piece, done, bytes) for each piece, then uploads it.
template <typename Fill>
Status sendBytes(const Plan& plan, Executor* executor, const BufferRef& to, const Fill& fill) {
  const uint64_t most = plan.upload.size_bytes / 2;
  for (uint64_t done = 0; done < to.size_bytes; done += most) {
    const uint64_t bytes = std::min(most, to.size_bytes - done);
    void* piece = nullptr;
    ORIEL_TRY(executor->beginWrite(bytes, &piece));
    ORIEL_TRY(fill(piece, done, bytes));
    ORIEL_TRY(executor->endWrite(to, done, bytes));
  }
  return kOk;
}
Status sendCopy(const Plan& plan, Executor* executor, const BufferRef& to, const void* from);

/// Reads a part of the device's memory: calls take(piece, done, bytes) for each piece.
template <typename Take>
Status readBytes(const Plan& plan, Executor* executor, const BufferRef& from, const Take& take) {
  const uint64_t most = plan.upload.size_bytes / 2;
  for (uint64_t done = 0; done < from.size_bytes; done += most) {
    const uint64_t bytes = std::min(most, from.size_bytes - done);
    const void* piece = nullptr;
    ORIEL_TRY(executor->read(from, done, bytes, &piece));
    ORIEL_TRY(take(piece, done, bytes));
  }
  return kOk;
}

// The pieces of a plan's arenas that belong to one session, and copies between sessions.

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
