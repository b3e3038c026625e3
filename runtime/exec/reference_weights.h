// Reads rows of a weight slice for the reference executor.
#pragma once

#include "plan/plan.h"

namespace oriel_internal {

constexpr uint32_t kTokenBlock = 8;  ///< tokens per unpacking of the weights

/// A weight slice, unpacked one unit of a row at a time.
struct WeightRows {
  WeightType type;
  const uint32_t* words;
  uint32_t group_words;
  uint32_t side_word;

  /// The values, bit-exact as in the file's format.
  void unpack(uint32_t row, uint32_t unit, float (&out)[kUnit]) const;
  /// Products of one row with n <= kTokenBlock vectors. Each unit is unpacked once for all of them.
  void dots(uint32_t row, uint32_t units, const float* x, uint32_t stride, uint32_t n,
            float* products) const;
};

}  // namespace oriel_internal
