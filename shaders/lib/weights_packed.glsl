// A unit of quantised weights as signed bytes, four to a word, in the order of its values. Value i of a
// unit is scale[h] * (byte - kPackedOffset) - minimum[h], with unitScale()'s scale, minimum and h.
#include "lib/weights.glsl"

const int kPackedOffset = kType == kTypeQ3_K   ? 4
                          : kType == kTypeQ4_0 ? 8
                          : kType == kTypeQ5_0 ? 16
                          : kType == kTypeQ6_K ? 32
                                               : 0;

void loadPacked(WeightRow row, uint unit, out uvec4 first, out uvec4 last) {
  if (kType == kTypeQ8_0) {
    first = quadOf(row, 2u * unit);
    last = quadOf(row, 2u * unit + 1u);
    return;
  }
  if (kIsTwoBits) {
    const uvec4 quad = quadOf(row, unit / 2u);
    const uvec2 w = (unit & 1u) == 0u ? quad.xy : quad.zw;
    first = (uvec4(w.x) >> uvec4(0u, 2u, 4u, 6u)) & 0x03030303u;
    last = (uvec4(w.y) >> uvec4(0u, 2u, 4u, 6u)) & 0x03030303u;
  } else {
    const uvec4 w = quadOf(row, unit);
    first = w & 0x0f0f0f0fu;
    last = (w >> 4) & 0x0f0f0f0fu;
  }
  if (kType == kTypeQ6_K) {
    const uint at = unit / 8u * kBlockWords + 5u + (unit & 7u) * 2u;
    first |= ((uvec4(sideOf(row, at)) >> uvec4(0u, 2u, 4u, 6u)) & 0x03030303u) << 4;
    last |= ((uvec4(sideOf(row, at + 1u)) >> uvec4(0u, 2u, 4u, 6u)) & 0x03030303u) << 4;
  } else if (kType == kTypeQ3_K || kType == kTypeQ5_0 || kType == kTypeQ5_1 || kType == kTypeQ5_K) {
    const uint high = highBits(row, unit);
    const uint shift = kType == kTypeQ3_K ? 2u : 4u;
    first |= ((uvec4(high) >> uvec4(0u, 1u, 2u, 3u)) & 0x01010101u) << shift;
    last |= ((uvec4(high) >> uvec4(4u, 5u, 6u, 7u)) & 0x01010101u) << shift;
  }
}
