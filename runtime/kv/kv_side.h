// One side (keys or values) of one layer's cache in memory: stores and reads vectors in any format. The scalar
// reference of the kernels.
#pragma once

#include <cstdint>

#include "kv/cache_layout.h"

namespace oriel_internal {

class KvSide {
 public:
  /// `words` has sideLayout(format, shape).bytes.
  KvSide(KvFormat format, const CacheShape& shape, uint32_t* words);

  /// Values are head_dim floats. A sink slot stores f16, a ring slot the side's format.
  void storeSink(uint32_t head, uint32_t slot, const float* values);
  void storeRing(uint32_t head, uint32_t slot, const float* values);
  void loadSink(uint32_t head, uint32_t slot, float* values) const;
  void loadRing(uint32_t head, uint32_t slot, float* values) const;

 private:
  uint32_t* sinkWords(uint32_t head, uint32_t slot) const;
  uint32_t* ringWords(uint32_t head, uint32_t slot) const;
  uint16_t scale(uint32_t head, uint32_t slot, uint32_t group) const;
  void setScale(uint32_t head, uint32_t slot, uint32_t group, uint16_t bits);

  KvFormat format_;
  uint32_t head_dim_;
  CacheShape shape_;
  uint32_t* words_;
  uint32_t* ring_words_;
  uint32_t* scale_words_;
};

}  // namespace oriel_internal
