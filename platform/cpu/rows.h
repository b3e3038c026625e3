// Layouts for vector instructions: rows of activations, and codebooks.
#pragma once

#include <cstdint>

#include "plan/codebooks.h"
#include "shaders/shared/layout.h"

namespace oriel_internal {

// Layouts of activations for the kernels of quantised weights.

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

// The codebooks of plan/codebooks.h in the layout for vector instructions: one word per entry, its codes in bytes.

template <uint32_t kEntries>
struct Codebook {
  uint32_t words[kEntries] = {};

  constexpr explicit Codebook(const uint32_t (&pairs)[kEntries / 2], bool eights) {
    for (uint32_t e = 0; e < kEntries; ++e) {
      const uint32_t codes = pairs[e / 2] >> (16 * (e % 2));
      for (uint32_t i = 0; i < 4; ++i) {
        words[e] |= eights ? (codes >> (2 * i) & 3) << (8 * i) | (codes >> (8 + 2 * i) & 3)
                                                                     << (8 * i + 2)
                           : (codes >> (3 * i) & 7) << (8 * i);
      }
    }
  }
};

/// Codebooks of eight values: byte i has the code of value i in bits 0 and 1, and of value 4 + i in bits 2 and 3.
constexpr Codebook<256> kIq2XxsBook(kIq2XxsGrid, true);
constexpr Codebook<512> kIq2XsBook(kIq2XsGrid, true);
constexpr Codebook<1024> kIq2SBook(kIq2SGrid, true);
/// Codebooks of four values: byte i has the code of value i.
constexpr Codebook<256> kIq3XxsBook(kIq3XxsGrid, false);
constexpr Codebook<512> kIq3SBook(kIq3SGrid, false);

}  // namespace oriel_internal
