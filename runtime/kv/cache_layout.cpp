#include "kv/cache_layout.h"

#include <algorithm>

namespace oriel {

const char* kvFormatName(KvFormat format) {
  switch (format) {
    case KvFormat::kF16:
      return "f16";
    case KvFormat::kInt8:
      return "int8";
    case KvFormat::kInt4:
      return "int4";
  }
  return "?";
}

const char* stateFormatName(StateFormat format) {
  switch (format) {
    case StateFormat::kF32:
      return "f32";
    case StateFormat::kF16:
      return "f16";
    case StateFormat::kInt8:
      return "int8";
  }
  return "?";
}

SideLayout sideLayout(KvFormat format, const CacheShape& shape) {
  const uint64_t heads = shape.n_kv_heads;
  SideLayout layout;
  layout.ring_word = heads * shape.sinks * kvValueWords(KvFormat::kF16, shape.head_dim);
  layout.scales_word = layout.ring_word + heads * shape.ring * kvValueWords(format, shape.head_dim);
  const uint64_t scales =
      format == KvFormat::kF16 ? 0 : heads * shape.ring * kvGroups(shape.head_dim);
  layout.bytes = 4 * (layout.scales_word + (scales + 1) / 2);
  return layout;
}

}  // namespace oriel
