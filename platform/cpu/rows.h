// Activations as the kernels for quantised weights read them.
#pragma once

#include <cstdint>

#include "shaders/shared/layout.h"

namespace oriel {

/// 32 activations in 15 bits and a sign: x ~ scale * value. Of every four values the first and third, then
/// the second and fourth, which is the order in which bytes of weight words are widened.
struct IntUnit {
  int16_t values[32];
};
/// What goes with a unit: kernels read some weights without their zero point and correct by these.
struct IntUnitSums {
  float scale;
  float scaled;       ///< scale * sum of all values
  float scaled_low;   ///< of values 0..15
  float scaled_high;  ///< of values 16..31
};

/// The same of kTileTokens tokens side by side, for chunks.
constexpr uint32_t kTileTokens = 8;
struct IntTile {
  int16_t values[16][kTileTokens][2];
  float scale[kTileTokens];
  float scaled[kTileTokens];       ///< scale * sum of all values
  float scaled_half[2][kTileTokens];  ///< of values 0..15, of 16..31
};

/// `units` IntUnits, then as many IntUnitSums.
constexpr uint64_t intRowBytes(uint32_t units) {
  return (sizeof(IntUnit) + sizeof(IntUnitSums)) * uint64_t{units};
}
/// An IntTile for each unit: kTileTokens rows.
constexpr uint64_t intTilesBytes(uint32_t units) { return sizeof(IntTile) * uint64_t{units}; }

}  // namespace oriel
