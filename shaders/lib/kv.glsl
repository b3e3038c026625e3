// The cache side formats (runtime/kv/cache_layout.h): codes, their values, and where a vector lies.
// Needs the constant kHeadDim.
#include "lib/form.glsl"
const uint kKvGroup = 32u;  // values that share a scale
const uint kGroups = (kHeadDim + kKvGroup - 1u) / kKvGroup;
const uint kHalfWords = kHeadDim / 2u;  // a vector in f16
const uint kInt8Words = (kHeadDim + 3u) / 4u;
const uint kInt4Words = (kHeadDim + 7u) / 8u;

const uint kKvF16 = 0u;
const uint kKvInt8 = 1u;
const uint kKvInt4 = 2u;
const uint kKeys = kFormFirst;
const uint kValues = kFormSecond;
const bool kLowBitKeys = kKeys != kKvF16;
const bool kLowBitValues = kValues != kKvF16;
const uint kKeyWords = kKeys == kKvF16 ? kHalfWords : kKeys == kKvInt8 ? kInt8Words : kInt4Words;
const uint kValueWords = kValues == kKvF16 ? kHalfWords : kValues == kKvInt8 ? kInt8Words : kInt4Words;

// What codes stand for, before the scale; docs/decisions/014-cache-formats.md says where the levels come from.
float int4Value(uint code) {
  const float t = float(int(code)) - 7.875;
  return t + t * t * t * (1.0 / 128.0);  // exact in every order
}
