// Layouts of activations for the kernels of quantised weights.
#pragma once

#include <cstdint>

#include "shaders/shared/layout.h"

namespace oriel_internal {

/// 32 activations as integers: x ~ scale * value. Each four values are stored as first, third, second,
/// fourth: the order in which bytes of weight words are widened.
struct IntUnit {
  int16_t values[32];
};
/// The same for instructions that multiply bytes: value i is 256 * high[i] + low[i].
struct PlaneUnit {
  int8_t high[32];
  int8_t low[32];
};
static_assert(sizeof(PlaneUnit) == sizeof(IntUnit), "a row of either takes the same room");
/// The largest value of each: both bytes are signed.
constexpr int32_t kMostOfPairs = 32767;
constexpr int32_t kMostOfPlanes = 256 * 127 + 127;
/// The limit of activations rounded to 8 bits, in any storage.
constexpr int32_t kMostOfBytes = 127;

/// Corrections of a unit: kernels read weights without their zero point or minimum. Index 0 is for
/// values 0..15, 1 for values 16..31, and kWhole for all.
constexpr uint32_t kWhole = 2;
struct IntUnitSums {
  float scale;
  float scaled[3];       ///< scale * sum of the values
  int32_t minus_sum[3];  ///< the effect of a zero point of 1 on the products
};

/// The same for kTileTokens tokens side by side. For chunks, whose weights are without zero point.
constexpr uint32_t kTileTokens = 8;
struct TileSums {
  float scale[kTileTokens];
  float scaled[3][kTileTokens];
};
struct IntTile {
  int16_t values[16][kTileTokens][2];
  TileSums sums;
};
struct PlaneTile {
  PlaneUnit tokens[kTileTokens];
  TileSums sums;
};
/// Activations rounded to 8 bits: values[j] holds values 4j .. 4j + 3, each plus 128.
struct ByteTile {
  uint8_t values[8][kTileTokens][4];
  TileSums sums;
  uint8_t unused[256];
};
static_assert(sizeof(PlaneTile) == sizeof(IntTile) && sizeof(ByteTile) == sizeof(IntTile),
              "tiles of each take the same room");

/// `units` IntUnits, then as many IntUnitSums.
constexpr uint64_t intRowBytes(uint32_t units) {
  return (sizeof(IntUnit) + sizeof(IntUnitSums)) * uint64_t{units};
}
/// An IntTile for each unit: kTileTokens rows.
constexpr uint64_t intTilesBytes(uint32_t units) { return sizeof(IntTile) * uint64_t{units}; }

}  // namespace oriel_internal
