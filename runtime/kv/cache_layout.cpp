#include "kv/cache_layout.h"

namespace oriel {

const char* kvFormatName(KvFormat format) {
  switch (format) {
    case KvFormat::kF16:
      return "f16";
  }
  return "?";
}

uint32_t kvVectorWords(KvFormat format, uint32_t head_dim) {
  switch (format) {
    case KvFormat::kF16:
      return head_dim / 2;
  }
  return 0;
}

uint64_t kvSideBytes(KvFormat format, const CacheShape& shape) {
  const uint64_t sink_words = kvVectorWords(KvFormat::kF16, shape.head_dim);
  const uint64_t ring_words = kvVectorWords(format, shape.head_dim);
  return 4ull * shape.n_kv_heads * (shape.sinks * sink_words + shape.ring * ring_words);
}

uint64_t kvSideBytesPerToken(KvFormat format, uint32_t n_kv_heads, uint32_t head_dim) {
  return 4ull * n_kv_heads * kvVectorWords(format, head_dim);
}

}  // namespace oriel
