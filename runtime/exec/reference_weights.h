// Rows of a weight slice as the reference executor reads them.
#pragma once

#include "plan/plan.h"

namespace oriel {

constexpr uint32_t kTokenBlock = 8;  ///< tokens that share one unpacking of the weights

/// Rows of a weight slice, unpacked a unit at a time.
struct WeightRows {
  WeightType type;
  const uint32_t* words;
  uint32_t words_per_row;
  uint32_t scales_word;
  uint32_t blocks_per_row;

  void unpack(uint32_t row, uint32_t unit, float (&out)[kUnit]) const;
  /// Products of one row with n <= kTokenBlock vectors, each unit unpacked once for all of them.
  void dots(uint32_t row, uint32_t units, const float* x, uint32_t stride, uint32_t n,
            float* products) const;

  float scale(uint32_t row, uint32_t unit) const;
};

}  // namespace oriel
