// Rotary position phases that stay exact at any position.
#pragma once

#include <cstdint>

#include "base/checked.h"

namespace oriel_internal {

/// Position times frequency as a fixed-point fraction of a turn: phase = step * position modulo 2^64, where step =
/// frequency / 2 pi * 2^64. The product wraps exactly like the angle, so the error of an angle is only the step's error,
/// |position| * 2^-65 turns: 2e-6 rad after 2^43 tokens (float32 products are wrong by 0.01 rad after 2^20).
class RopePhases {
 public:
  /// Frequencies theta^(-2i / dims) / divisors[i] for i < dims / 2 (null: all 1). Pairs are multiplied by `magnitude`.
  /// `steps` has room for dims / 2 numbers and must outlive this object.
  void init(double theta, uint32_t dims, const double* divisors, double magnitude, uint64_t* steps);

  /// Writes dims / 2 pairs (cos, sin), times the magnitude and `scale`, for `position`.
  void rotations(uint64_t position, float* pairs, double scale = 1) const;

  uint64_t step(uint32_t i) const { return steps_[i]; }
  double magnitude() const { return magnitude_; }

 private:
  uint32_t n_ = 0;
  double magnitude_ = 1.0;
  uint64_t* steps_ = nullptr;
};

}  // namespace oriel_internal
