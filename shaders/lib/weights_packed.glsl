// A unit of quantised weights as signed bytes, four to a word, in the order of its values. Value i of a
// unit is scale[h] * (byte - kPackedOffset) - minimum[h], with unitScale()'s scale, minimum and h.
#include "lib/weights.glsl"

#if defined(WEIGHT_Q4_0)
const int kPackedOffset = 8;
#elif defined(WEIGHT_Q5_0)
const int kPackedOffset = 16;
#elif defined(WEIGHT_Q6_K)
const int kPackedOffset = 32;
#elif defined(WEIGHT_Q3_K)
const int kPackedOffset = 4;
#else
const int kPackedOffset = 0;
#endif

void loadPacked(WeightRow row, uint unit, out uvec4 first, out uvec4 last) {
#if defined(WEIGHT_Q8_0)
  first = quadOf(row, 2u * unit);
  last = quadOf(row, 2u * unit + 1u);
#elif defined(WEIGHT_Q2_K) || defined(WEIGHT_Q3_K)
  const uvec4 quad = quadOf(row, unit / 2u);
  const uvec2 w = (unit & 1u) == 0u ? quad.xy : quad.zw;
  first = (uvec4(w.x) >> uvec4(0u, 2u, 4u, 6u)) & 0x03030303u;
  last = (uvec4(w.y) >> uvec4(0u, 2u, 4u, 6u)) & 0x03030303u;
#else
  const uvec4 w = quadOf(row, unit);
  first = w & 0x0f0f0f0fu;
  last = (w >> 4) & 0x0f0f0f0fu;
#endif
#if defined(WEIGHT_Q6_K)
  const uint at = unit / 8u * 21u + 5u + (unit & 7u) * 2u;
  first |= ((uvec4(sideOf(row, at)) >> uvec4(0u, 2u, 4u, 6u)) & 0x03030303u) << 4;
  last |= ((uvec4(sideOf(row, at + 1u)) >> uvec4(0u, 2u, 4u, 6u)) & 0x03030303u) << 4;
#elif defined(WEIGHT_Q3_K) || defined(WEIGHT_Q5_0) || defined(WEIGHT_Q5_1) || defined(WEIGHT_Q5_K)
#if defined(WEIGHT_Q5_0)
  const uint high = sideOf(row, unit / 2u * 3u + (unit & 1u));
#elif defined(WEIGHT_Q5_1)
  const uint high = sideOf(row, 2u * unit);
#else
  const uint high = sideOf(row, unit / 8u * 13u + 5u + (unit & 7u));
#endif
#if defined(WEIGHT_Q3_K)
  const uint shift = 2u;
#else
  const uint shift = 4u;
#endif
  first |= ((uvec4(high) >> uvec4(0u, 1u, 2u, 3u)) & 0x01010101u) << shift;
  last |= ((uvec4(high) >> uvec4(4u, 5u, 6u, 7u)) & 0x01010101u) << shift;
#endif
}
