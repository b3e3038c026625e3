// The cache formats in scalar code: codes, and vectors of a side.
#pragma once

#include <cmath>
#include <cstdint>

#include "kv/cache_layout.h"

namespace oriel_internal {

// The low-bit cache formats in scalar code, with the same rounding as the append kernels. Alternatives and reasons:
// docs/decisions/014-cache-formats.md.

/// Multiplies blocks of `block` values (a power of two) by the normalised Walsh-Hadamard matrix, in place. It is its own
/// inverse. Keys and queries are rotated equally, which spreads outlier channels over all channels and preserves every q
/// . k.
void hadamard(float* values, uint32_t n, uint32_t block);

/// Levels of int4: unevenly spaced, near-optimal for a Gaussian group with a searched scale, and exact in float32 in any
/// order of operations.
constexpr float int4Level(uint32_t code) {
  const float t = static_cast<float>(code) - 7.875f;
  return t + t * t * t * (1.0f / 128.0f);
}

constexpr uint32_t kInt4Levels = 16;
/// Candidate scales, as multiples of the value of largest magnitude, times 2048. Chosen on Gaussian noise.
constexpr uint32_t kInt4Candidates = 16;
constexpr float kInt4Candidate[kInt4Candidates] = {-270, -220, -215, -210, -205, -185, -180, -175,
                                                   -170, -165, -160, 195,  200,  205,  210,  255};

/// The value of a stored code before scaling: int8 in two's complement, or an int4 level.
inline float kvCodeValue(KvFormat format, uint32_t code) {
  return format == KvFormat::kInt8 ? static_cast<float>(static_cast<int8_t>(code))
                                   : int4Level(code);
}

/// Codes of n <= kKvGroup values in a low-bit format; returns the bits of their f16 scale. The scale is rounded first,
/// so codes are nearest for the scale that is read back.
///   int8: scale max |x| / 127.
///   int4: the best by squared error of 16 multiples of the value of largest magnitude; may be
///         negative, since the levels are lopsided.
uint16_t quantiseGroup(KvFormat format, const float* values, uint32_t n, uint8_t* codes);

/// A vector of n values as bytes: kvValueWords() words of values and, in low-bit formats, a separate f16 scale for each
/// kKvGroup values.
void loadVector(KvFormat format, const uint8_t* codes, const uint8_t* scales, uint32_t n,
                float* values);
/// Into zeros.
void storeVector(KvFormat format, const float* values, uint32_t n, uint8_t* codes, uint8_t* scales);

// One side (keys or values) of one layer's cache in memory: stores and reads vectors in any format. The scalar
// reference of the kernels.

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
