// Rows of a weight slice as the reference executor reads them.
#pragma once

#include "plan/plan.h"

namespace oriel_internal {

constexpr uint32_t kTokenBlock = 8;  ///< tokens that share one unpacking of the weights

/// A weight slice, unpacked a unit of a row at a time.
struct WeightRows {
  WeightType type;
  const uint32_t* words;
  uint32_t group_words;
  uint32_t side_word;

  /// The values, to the bit what the file's format defines.
  void unpack(uint32_t row, uint32_t unit, float (&out)[kUnit]) const;
  /// Products of one row with n <= kTokenBlock vectors, each unit unpacked once for all of them.
  void dots(uint32_t row, uint32_t units, const float* x, uint32_t stride, uint32_t n,
            float* products) const;
};

}  // namespace oriel_internal
