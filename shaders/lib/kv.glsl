// The cache side formats (runtime/kv/cache_layout.h): codes, their values, and where a vector lies.
// Needs the constant kHeadDim; K_INT8 or K_INT4 and V_INT8 or V_INT4 choose the formats (neither: f16).
const uint kKvGroup = 32u;  // values that share a scale
const uint kGroups = (kHeadDim + kKvGroup - 1u) / kKvGroup;
const uint kHalfWords = kHeadDim / 2u;  // a vector in f16
const uint kInt8Words = (kHeadDim + 3u) / 4u;
const uint kInt4Words = (kHeadDim + 7u) / 8u;

#if defined(K_INT8)
const uint kKeyWords = kInt8Words;
const uint kKeyBits = 8u;
#elif defined(K_INT4)
const uint kKeyWords = kInt4Words;
const uint kKeyBits = 4u;
#else
const uint kKeyWords = kHalfWords;
#endif
#if defined(V_INT8)
const uint kValueWords = kInt8Words;
const uint kValueBits = 8u;
#elif defined(V_INT4)
const uint kValueWords = kInt4Words;
const uint kValueBits = 4u;
#else
const uint kValueWords = kHalfWords;
#endif

#if defined(K_INT8) || defined(K_INT4)
const uint kKeyScales = kGroups;  // of a vector
#else
const uint kKeyScales = 0u;
#endif
#if defined(V_INT8) || defined(V_INT4)
const uint kValueScales = kGroups;
#else
const uint kValueScales = 0u;
#endif

// What codes stand for, before the scale; docs/kv-formats.md says where the levels come from.
float int4Value(uint code) {
  const float t = float(int(code)) - 7.875;
  return t + t * t * t * (1.0 / 128.0);  // exact in every order
}
vec4 int4Values(uint codes) {  // the lowest four
  const vec4 t = vec4(ivec4(uvec4(codes, codes >> 4, codes >> 8, codes >> 12) & 15u)) - 7.875;
  return t + t * t * t * (1.0 / 128.0);
}
