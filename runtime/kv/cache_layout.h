// Where keys and values lie in memory.
#pragma once

#include <cstdint>



namespace oriel {

enum class KvFormat : uint8_t { kF16 };
const char* kvFormatName(KvFormat format);

/// Slots of one layer and side. Positions below `sinks` have slots of their own; the others share a
/// ring. ring >= window + chunk - 1, so that the first query of a chunk still finds its whole window
/// after the last token of the chunk has been stored.
struct CacheShape {
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t sinks = 0;
  uint32_t window = 0;
  uint32_t ring = 0;
};

/// Words of one head's key or value of one token.
uint32_t kvVectorWords(KvFormat format, uint32_t head_dim);
/// Bytes of one layer's keys (or values): sinks in f16, then the ring in `format`.
uint64_t kvSideBytes(KvFormat format, const CacheShape& shape);
/// Bytes that one more token of window adds to one layer's side.
uint64_t kvSideBytesPerToken(KvFormat format, uint32_t n_kv_heads, uint32_t head_dim);

}  // namespace oriel
