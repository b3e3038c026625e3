// Binding 0 of the kernels that read weights: a slice packed as shared/layout.h says, one unit of a
// row at a time. WEIGHT_<TYPE> chooses the format. Integers are converted from `int`, which CPUs do
// in one instruction; `uint` takes them several.
#include "lib/half.glsl"

// What the formats have in common.
#if defined(WEIGHT_Q4_0) || defined(WEIGHT_Q8_0) || defined(WEIGHT_IQ4_NL)
#define PAIRED_SCALES
#endif
#if defined(WEIGHT_Q4_1) || defined(WEIGHT_Q5_1) || defined(WEIGHT_Q4_K) || \
    defined(WEIGHT_Q5_K) || defined(WEIGHT_Q2_K)
#define HAS_MINIMUM  // something is subtracted after scaling
#endif
#if defined(WEIGHT_Q2_K) || defined(WEIGHT_Q3_K) || defined(WEIGHT_Q6_K) || \
    defined(WEIGHT_IQ2_XS) || defined(WEIGHT_IQ2_S) || defined(WEIGHT_NVFP4)
#define HALF_SCALES  // one scale per 16 values
#endif
#if defined(WEIGHT_MXFP4) || defined(WEIGHT_NVFP4)
#define FP4
#endif
#if defined(WEIGHT_IQ4_NL) || defined(WEIGHT_IQ4_XS) || defined(FP4)
#define TABLE
#endif
#if defined(WEIGHT_IQ2_XXS) || defined(WEIGHT_IQ2_XS) || defined(WEIGHT_IQ2_S)
#define CODEBOOK  // of sizes of eight values
#define CODEBOOK_EIGHTS
#elif defined(WEIGHT_IQ3_XXS) || defined(WEIGHT_IQ3_S)
#define CODEBOOK  // of four
#endif

#if defined(TEXELS)
layout(set = 0, binding = 6, rgba32ui) readonly uniform uimageBuffer weight_quads;
layout(set = 0, binding = 7, r32ui) readonly uniform uimageBuffer weight_words;
#else
layout(std430, set = 0, binding = 0) readonly buffer Weights {
  uvec4 weight_quads[];
};
layout(std430, set = 0, binding = 0) readonly buffer Sides {
  uint weight_words[];
};
#endif

const uint kUnitVectors = kUnit / 4u;  // of four neighbouring values

// A row of a group: where its first quad and its first side word are.
struct WeightRow {
  uint quad;
  uint side;
};

WeightRow weightRow(uint group_words, uint side_word, uint row) {
  const uint group = row / kGroupRows * group_words;
  return WeightRow(group / 4u + row % kGroupRows, group + side_word + row % kGroupRows);
}

#if defined(TEXELS)
uvec4 quadOf(WeightRow row, uint quad) {
  return imageLoad(weight_quads, int(row.quad + quad * kGroupRows));
}
uint sideOf(WeightRow row, uint word) {
  return imageLoad(weight_words, int(row.side + word * kGroupRows)).x;
}
#else
uvec4 quadOf(WeightRow row, uint quad) { return weight_quads[row.quad + quad * kGroupRows]; }
uint sideOf(WeightRow row, uint word) { return weight_words[row.side + word * kGroupRows]; }
#endif

float lowHalf(uint word) { return exactHalf(word & 0xffffu); }
float highHalf(uint word) { return exactHalf(word >> 16); }
float halfAt(uint word, uint index) { return exactHalf((word >> (16u * index)) & 0xffffu); }
uint byteAt(uint word, uint index) { return (word >> (8u * index)) & 0xffu; }
int signedByteAt(uint word, uint index) { return int(word << (24u - 8u * index)) >> 24; }

#if defined(CODEBOOK)
#include "lib/weights_codebook.glsl"
#else
void prepareWeights(uint lane, uint lanes) {}
#endif

// Value i of a unit is scale[h] * v - minimum[h], with h = i / 16 for HALF_SCALES, else 0;
// `minimum` is not used without HAS_MINIMUM.
struct UnitScale {
  vec2 scale;
  vec2 minimum;
};

#if defined(WEIGHT_NVFP4)
// Half of an unsigned float of 4 and 3 bits; the largest is none.
float smallScale(uint bits) {
  const uint e = bits >> 3;
  const uint whole = (bits & 7u) + (e != 0u ? 8u : 0u);
  return bits == 0x7fu ? 0.0 : float(int(whole)) * uintBitsToFloat((max(e, 1u) + 116u) << 23);
}
#endif

UnitScale unitScale(WeightRow row, uint unit) {
  UnitScale s = UnitScale(vec2(1.0), vec2(0.0));
#if defined(PAIRED_SCALES)
  s.scale.x = halfAt(sideOf(row, unit / 2u), unit & 1u);
#elif defined(WEIGHT_Q5_0)
  s.scale.x = halfAt(sideOf(row, unit / 2u * 3u + 2u), unit & 1u);
#elif defined(WEIGHT_Q4_1) || defined(WEIGHT_Q5_1)
#if defined(WEIGHT_Q4_1)
  const uint both = sideOf(row, unit);
#else
  const uint both = sideOf(row, 2u * unit + 1u);
#endif
  s.scale.x = lowHalf(both);
  s.minimum.x = -highHalf(both);
#elif defined(WEIGHT_Q4_K) || defined(WEIGHT_Q5_K)
#if defined(WEIGHT_Q4_K)
  const uint at = unit / 8u * 5u;
#else
  const uint at = unit / 8u * 13u;
#endif
  const uint both = sideOf(row, at);
  const uint word = at + 1u + (unit & 7u) / 4u;
  s.scale.x = lowHalf(both) * float(int(byteAt(sideOf(row, word), unit & 3u)));
  s.minimum.x = highHalf(both) * float(int(byteAt(sideOf(row, word + 2u), unit & 3u)));
#elif defined(WEIGHT_Q2_K)
  const uint at = unit / 8u * 5u;
  const uint both = sideOf(row, at);
  const uint pair = sideOf(row, at + 1u + (unit & 7u) / 2u) >> (16u * (unit & 1u));
  s.scale = lowHalf(both) * vec2(ivec2(pair, pair >> 8) & 15);
  s.minimum = highHalf(both) * vec2(ivec2(pair >> 4, pair >> 12) & 15);
#elif defined(WEIGHT_Q3_K) || defined(WEIGHT_Q6_K)
#if defined(WEIGHT_Q3_K)
  const uint at = unit / 8u * 13u;
#else
  const uint at = unit / 8u * 21u;
#endif
  const uint pair = sideOf(row, at + 1u + (unit & 7u) / 2u) >> (16u * (unit & 1u));
  s.scale = lowHalf(sideOf(row, at)) * vec2(ivec2(signedByteAt(pair, 0u), signedByteAt(pair, 1u)));
#elif defined(WEIGHT_IQ4_XS)
  const uint at = unit / 8u * 3u;
  const uint word = sideOf(row, at + 1u + (unit & 7u) / 4u);
  s.scale.x = lowHalf(sideOf(row, at)) * float(signedByteAt(word, unit & 3u));
#elif defined(WEIGHT_MXFP4)
  const uint e = byteAt(sideOf(row, unit / 4u), unit & 3u);
  s.scale.x = uintBitsToFloat(e < 2u ? 1u << (21u + e) : (e - 1u) << 23);
#elif defined(WEIGHT_NVFP4)
  const uint pair = sideOf(row, unit / 2u) >> (16u * (unit & 1u));
  s.scale = vec2(smallScale(pair & 0x7fu), smallScale(pair >> 8 & 0x7fu));
#elif defined(WEIGHT_Q1_0)
  s.scale.x = halfAt(sideOf(row, unit / 8u * 9u), unit / 4u & 1u);
#elif defined(WEIGHT_Q2_0)
  s.scale.x = halfAt(sideOf(row, unit / 4u), unit / 2u & 1u);
#elif defined(CODEBOOK)
  s.scale = codebookScale(row, unit);
#endif
  return s;
}

// Four bytes, each less `offset`.
vec4 bytesLess(uint bytes, int offset) {
  return vec4(ivec4(uvec4(bytes, bytes >> 8, bytes >> 16, bytes >> 24) & 255u) - offset);
}
// Four nibbles, in the low halves of bytes.
ivec4 nibbles(uint word) { return ivec4(uvec4(word, word >> 8, word >> 16, word >> 24) & 15u); }

#if defined(TABLE)
// What a nibble stands for, of: -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113; of the 4-bit floats, twice, of:
// 0 1 2 3 4 6 8 12 0 -1 -2 -3 -4 -6 -8 -12.
float tableValue(int q) {
#if defined(FP4)
  const uint first = q < 4 ? 0x03020100u : 0x0c080604u;
  const uint last = q < 12 ? 0xfdfeff00u : 0xf4f8fafcu;
#else
  const uint first = q < 4 ? 0xbfad9881u : 0xf6eaddcfu;
  const uint last = q < 12 ? 0x26190d01u : 0x71594535u;
#endif
  return float(signedByteAt(q < 8 ? first : last, uint(q & 3)));
}
vec4 tableValues(ivec4 q) {
  return vec4(tableValue(q.x), tableValue(q.y), tableValue(q.z), tableValue(q.w));
}
#endif

// The values of a unit, still to be scaled.
void loadUnit(WeightRow row, uint unit, out vec4 v[kUnitVectors]) {
#if defined(WEIGHT_F32)
  [[unroll]] for (uint i = 0u; i < 8u; ++i) {
    v[i] = uintBitsToFloat(quadOf(row, 8u * unit + i));
  }
#elif defined(WEIGHT_F16)
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    const uvec4 w = quadOf(row, 4u * unit + i);
    v[2u * i] = vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
    v[2u * i + 1u] = vec4(unpackHalf2x16(w.z), unpackHalf2x16(w.w));
  }
#elif defined(WEIGHT_BF16)
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    const uvec4 w = quadOf(row, 4u * unit + i);
    const uvec4 even = w << 16;
    const uvec4 odd = w & 0xffff0000u;
    v[2u * i] = uintBitsToFloat(uvec4(even.x, odd.x, even.y, odd.y));
    v[2u * i + 1u] = uintBitsToFloat(uvec4(even.z, odd.z, even.w, odd.w));
  }
#elif defined(WEIGHT_Q8_0)
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    const ivec4 w = ivec4(quadOf(row, 2u * unit + i));
    [[unroll]] for (uint j = 0u; j < 4u; ++j) {
      v[4u * i + j] = vec4(ivec4(w[j] << 24, w[j] << 16, w[j] << 8, w[j]) >> 24);
    }
  }
#elif defined(CODEBOOK)
  loadFromCodebook(row, unit, v);
#elif defined(WEIGHT_Q1_0)
  const uint bits = sideOf(row, unit / 8u * 9u + 1u + (unit & 7u));
  [[unroll]] for (uint i = 0u; i < kUnitVectors; ++i) {
    v[i] = bytesLess((bits >> i & 0x01010101u) << 1, 1);
  }
#elif defined(WEIGHT_Q2_K) || defined(WEIGHT_Q3_K) || defined(WEIGHT_Q2_0)
  const uvec4 quad = quadOf(row, unit / 2u);
  const uvec2 w = (unit & 1u) == 0u ? quad.xy : quad.zw;
#if defined(WEIGHT_Q3_K)
  const uint high = sideOf(row, unit / 8u * 13u + 5u + (unit & 7u));
#endif
  [[unroll]] for (uint i = 0u; i < kUnitVectors; ++i) {
    const uint bytes = (w[i / 4u] >> (2u * (i % 4u))) & 0x03030303u;
#if defined(WEIGHT_Q3_K)
    v[i] = bytesLess(bytes | (((high >> i) & 0x01010101u) << 2), 4);
#elif defined(WEIGHT_Q2_0)
    v[i] = bytesLess(bytes, 1);
#else
    v[i] = bytesLess(bytes, 0);
#endif
  }
#else  // Nibbles
  const uvec4 w = quadOf(row, unit);
#if defined(WEIGHT_Q5_0)
  const uint high = sideOf(row, unit / 2u * 3u + (unit & 1u));
#elif defined(WEIGHT_Q5_1)
  const uint high = sideOf(row, 2u * unit);
#elif defined(WEIGHT_Q5_K)
  const uint high = sideOf(row, unit / 8u * 13u + 5u + (unit & 7u));
#elif defined(WEIGHT_Q6_K)
  const uint at = unit / 8u * 21u + 5u + (unit & 7u) * 2u;
  const uvec2 high = uvec2(sideOf(row, at), sideOf(row, at + 1u));
#endif
  [[unroll]] for (uint j = 0u; j < 4u; ++j) {
#if defined(WEIGHT_Q4_0)
    v[j] = vec4(nibbles(w[j]) - 8);
    v[4u + j] = vec4(nibbles(w[j] >> 4) - 8);
#elif defined(WEIGHT_Q4_1) || defined(WEIGHT_Q4_K)
    v[j] = vec4(nibbles(w[j]));
    v[4u + j] = vec4(nibbles(w[j] >> 4));
#elif defined(TABLE)
    v[j] = tableValues(nibbles(w[j]));
    v[4u + j] = tableValues(nibbles(w[j] >> 4));
#else
    const uint first = w[j] & 0x0f0f0f0fu;
    const uint second = (w[j] >> 4) & 0x0f0f0f0fu;
#if defined(WEIGHT_Q6_K)
    v[j] = bytesLess(first | (((high.x >> (2u * j)) & 0x03030303u) << 4), 32);
    v[4u + j] = bytesLess(second | (((high.y >> (2u * j)) & 0x03030303u) << 4), 32);
#else
#if defined(WEIGHT_Q5_0)
    const int offset = 16;
#else
    const int offset = 0;
#endif
    v[j] = bytesLess(first | (((high >> j) & 0x01010101u) << 4), offset);
    v[4u + j] = bytesLess(second | (((high >> (4u + j)) & 0x01010101u) << 4), offset);
#endif
#endif
  }
#endif
}
