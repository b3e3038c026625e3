// Binding 0 of the kernels that read weights: a slice packed as shared/layout.h says, one unit of a row at a time.
// Integers are converted from `int`, which CPUs do in one instruction; `uint` takes them several.
#include "lib/form.glsl"
#include "lib/half.glsl"

// Types of weights, numbered as WeightType (runtime/plan/op.h) and `types` (variants.cmake). shared/layout.h says how each
// is packed.
const uint kTypeF32 = 0u;
const uint kTypeF16 = 1u;
const uint kTypeBf16 = 2u;
const uint kTypeQ8_0 = 3u;
const uint kTypeQ4_0 = 4u;
const uint kTypeQ4_1 = 5u;
const uint kTypeQ5_0 = 6u;
const uint kTypeQ5_1 = 7u;
const uint kTypeIq4Nl = 8u;
const uint kTypeQ2_K = 9u;
const uint kTypeQ3_K = 10u;
const uint kTypeQ4_K = 11u;
const uint kTypeQ5_K = 12u;
const uint kTypeQ6_K = 13u;
const uint kTypeIq4Xs = 14u;
const uint kTypeIq2Xxs = 15u;
const uint kTypeIq2Xs = 16u;
const uint kTypeIq2S = 17u;
const uint kTypeIq3Xxs = 18u;
const uint kTypeIq3S = 19u;
const uint kTypeMxfp4 = 20u;
const uint kTypeNvfp4 = 23u;
const uint kTypeQ1_0 = 24u;
const uint kTypeQ2_0 = 25u;

// What the formats have in common.
const uint kType = kFormFirst;
const bool kIsFloat = kType == kTypeF32 || kType == kTypeF16 || kType == kTypeBf16;
const bool kHasMinimum = kType == kTypeQ4_1 || kType == kTypeQ5_1 || kType == kTypeQ4_K || kType == kTypeQ5_K ||
                         kType == kTypeQ2_K;  // something is subtracted after scaling
const bool kHalfScales = kType == kTypeQ2_K || kType == kTypeQ3_K || kType == kTypeQ6_K || kType == kTypeIq2Xs ||
                         kType == kTypeIq2S || kType == kTypeNvfp4;  // one scale per 16 values
const bool kIsFp4 = kType == kTypeMxfp4 || kType == kTypeNvfp4;
const bool kHasTable = kType == kTypeIq4Nl || kType == kTypeIq4Xs || kIsFp4;
const bool kIsIq2 = kType == kTypeIq2Xxs || kType == kTypeIq2Xs || kType == kTypeIq2S;  // a codebook of eight values
const bool kIsIq3 = kType == kTypeIq3Xxs || kType == kTypeIq3S;                         // of four
const bool kIsTwoBits = kType == kTypeQ2_K || kType == kTypeQ3_K || kType == kTypeQ2_0;
// Side words of eight units, where they belong together.
const uint kBlockWords = kType == kTypeIq4Xs                         ? 3u
                         : kType == kTypeQ2_K || kType == kTypeQ4_K  ? 5u
                         : kType == kTypeQ1_0                        ? 9u
                         : kType == kTypeQ3_K || kType == kTypeQ5_K  ? 13u
                         : kType == kTypeIq2Xxs                      ? 17u
                         : kType == kTypeIq2Xs                       ? 19u
                         : kType == kTypeQ6_K || kType == kTypeIq2S  ? 21u
                         : kType == kTypeIq3Xxs                      ? 25u
                                                                     : 28u;

layout(set = 0, binding = 6, rgba32ui) readonly uniform uimageBuffer quad_texels;
layout(set = 0, binding = 7, r32ui) readonly uniform uimageBuffer word_texels;
layout(std430, set = 0, binding = 0) readonly buffer Weights {
  uvec4 weight_quads[];
};
layout(std430, set = 0, binding = 0) readonly buffer Sides {
  uint weight_words[];
};

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

uvec4 quadOf(WeightRow row, uint quad) {
  const uint at = row.quad + quad * kGroupRows;
  if (kTexels) {
    return imageLoad(quad_texels, int(at));
  }
  return weight_quads[at];
}
uint sideOf(WeightRow row, uint word) {
  const uint at = row.side + word * kGroupRows;
  if (kTexels) {
    return imageLoad(word_texels, int(at)).x;
  }
  return weight_words[at];
}

float lowHalf(uint word) { return exactHalf(word & 0xffffu); }
float highHalf(uint word) { return exactHalf(word >> 16); }
float halfAt(uint word, uint index) { return exactHalf((word >> (16u * index)) & 0xffffu); }
uint byteAt(uint word, uint index) { return (word >> (8u * index)) & 0xffu; }
int signedByteAt(uint word, uint index) { return int(word << (24u - 8u * index)) >> 24; }

#include "lib/weights_codebook.glsl"

// Value i of a unit is scale[h] * v - minimum[h], with h = i / 16 for kHalfScales, else 0;
// `minimum` is not used without kHasMinimum.
struct UnitScale {
  vec2 scale;
  vec2 minimum;
};

// Half of an unsigned float of 4 and 3 bits; the largest is none.
float smallScale(uint bits) {
  const uint e = bits >> 3;
  const uint whole = (bits & 7u) + (e != 0u ? 8u : 0u);
  return bits == 0x7fu ? 0.0 : float(int(whole)) * uintBitsToFloat((max(e, 1u) + 116u) << 23);
}

UnitScale unitScale(WeightRow row, uint unit) {
  UnitScale s = UnitScale(vec2(1.0), vec2(0.0));
  const uint block = unit / 8u * kBlockWords;
  if (kType == kTypeQ4_0 || kType == kTypeQ8_0 || kType == kTypeIq4Nl) {
    s.scale.x = halfAt(sideOf(row, unit / 2u), unit & 1u);
  } else if (kType == kTypeQ5_0) {
    s.scale.x = halfAt(sideOf(row, unit / 2u * 3u + 2u), unit & 1u);
  } else if (kType == kTypeQ4_1 || kType == kTypeQ5_1) {
    const uint both = sideOf(row, kType == kTypeQ4_1 ? unit : 2u * unit + 1u);
    s.scale.x = lowHalf(both);
    s.minimum.x = -highHalf(both);
  } else if (kType == kTypeQ4_K || kType == kTypeQ5_K) {
    const uint both = sideOf(row, block);
    const uint word = block + 1u + (unit & 7u) / 4u;
    s.scale.x = lowHalf(both) * float(int(byteAt(sideOf(row, word), unit & 3u)));
    s.minimum.x = highHalf(both) * float(int(byteAt(sideOf(row, word + 2u), unit & 3u)));
  } else if (kType == kTypeQ2_K) {
    const uint both = sideOf(row, block);
    const uint pair = sideOf(row, block + 1u + (unit & 7u) / 2u) >> (16u * (unit & 1u));
    s.scale = lowHalf(both) * vec2(ivec2(pair, pair >> 8) & 15);
    s.minimum = highHalf(both) * vec2(ivec2(pair >> 4, pair >> 12) & 15);
  } else if (kType == kTypeQ3_K || kType == kTypeQ6_K) {
    const uint pair = sideOf(row, block + 1u + (unit & 7u) / 2u) >> (16u * (unit & 1u));
    s.scale = lowHalf(sideOf(row, block)) * vec2(ivec2(signedByteAt(pair, 0u), signedByteAt(pair, 1u)));
  } else if (kType == kTypeIq4Xs) {
    const uint word = sideOf(row, block + 1u + (unit & 7u) / 4u);
    s.scale.x = lowHalf(sideOf(row, block)) * float(signedByteAt(word, unit & 3u));
  } else if (kType == kTypeMxfp4) {
    const uint e = byteAt(sideOf(row, unit / 4u), unit & 3u);
    s.scale.x = uintBitsToFloat(e < 2u ? 1u << (21u + e) : (e - 1u) << 23);
  } else if (kType == kTypeNvfp4) {
    const uint pair = sideOf(row, unit / 2u) >> (16u * (unit & 1u));
    s.scale = vec2(smallScale(pair & 0x7fu), smallScale(pair >> 8 & 0x7fu));
  } else if (kType == kTypeQ1_0) {
    s.scale.x = halfAt(sideOf(row, block), unit / 4u & 1u);
  } else if (kType == kTypeQ2_0) {
    s.scale.x = halfAt(sideOf(row, unit / 4u), unit / 2u & 1u);
  } else if (kIsIq2 || kIsIq3) {
    s.scale = codebookScale(row, unit);
  }
  return s;
}

// Four bytes, each less `offset`.
vec4 bytesLess(uint bytes, const int offset) {
  return vec4(ivec4(uvec4(bytes, bytes >> 8, bytes >> 16, bytes >> 24) & 255u) - offset);
}
// Four nibbles, in the low halves of bytes.
ivec4 nibbles(uint word) { return ivec4(uvec4(word, word >> 8, word >> 16, word >> 24) & 15u); }

// What a nibble stands for, of: -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113; of the 4-bit floats, twice, of:
// 0 1 2 3 4 6 8 12 0 -1 -2 -3 -4 -6 -8 -12.
const uint kTable0 = kIsFp4 ? 0x03020100u : 0xbfad9881u;
const uint kTable4 = kIsFp4 ? 0x0c080604u : 0xf6eaddcfu;
const uint kTable8 = kIsFp4 ? 0xfdfeff00u : 0x26190d01u;
const uint kTable12 = kIsFp4 ? 0xf4f8fafcu : 0x71594535u;
float tableValue(int q) {
  const uint first = q < 4 ? kTable0 : kTable4;
  const uint last = q < 12 ? kTable8 : kTable12;
  return float(signedByteAt(q < 8 ? first : last, uint(q & 3)));
}
vec4 tableValues(ivec4 q) {
  return vec4(tableValue(q.x), tableValue(q.y), tableValue(q.z), tableValue(q.w));
}

// The bits of a unit's values above the fourth, or in Q3_K the second, as layout.h has them.
uint highBits(WeightRow row, uint unit) {
  if (kType == kTypeQ5_0) {
    return sideOf(row, unit / 2u * 3u + (unit & 1u));
  }
  if (kType == kTypeQ5_1) {
    return sideOf(row, 2u * unit);
  }
  return sideOf(row, unit / 8u * kBlockWords + (kType == kTypeQ1_0 ? 1u : 5u) + (unit & 7u));
}

// The values of a unit, still to be scaled.
void loadUnit(WeightRow row, uint unit, out vec4 v[kUnitVectors]) {
  if (kType == kTypeF32) {
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
      v[i] = uintBitsToFloat(quadOf(row, 8u * unit + i));
    }
  } else if (kType == kTypeF16) {
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      const uvec4 w = quadOf(row, 4u * unit + i);
      v[2u * i] = vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
      v[2u * i + 1u] = vec4(unpackHalf2x16(w.z), unpackHalf2x16(w.w));
    }
  } else if (kType == kTypeBf16) {
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      const uvec4 w = quadOf(row, 4u * unit + i);
      const uvec4 even = w << 16;
      const uvec4 odd = w & 0xffff0000u;
      v[2u * i] = uintBitsToFloat(uvec4(even.x, odd.x, even.y, odd.y));
      v[2u * i + 1u] = uintBitsToFloat(uvec4(even.z, odd.z, even.w, odd.w));
    }
  } else if (kType == kTypeQ8_0) {
    [[unroll]] for (uint i = 0u; i < 2u; ++i) {
      const ivec4 w = ivec4(quadOf(row, 2u * unit + i));
      [[unroll]] for (uint j = 0u; j < 4u; ++j) {
        v[4u * i + j] = vec4(ivec4(w[j] << 24, w[j] << 16, w[j] << 8, w[j]) >> 24);
      }
    }
  } else if (kIsIq2) {
    loadEights(row, unit, v);
  } else if (kIsIq3) {
    loadFours(row, unit, v);
  } else if (kType == kTypeQ1_0) {
    const uint bits = highBits(row, unit);
    [[unroll]] for (uint i = 0u; i < kUnitVectors; ++i) {
      v[i] = bytesLess((bits >> i & 0x01010101u) << 1, 1);
    }
  } else if (kIsTwoBits) {
    const uvec4 quad = quadOf(row, unit / 2u);
    const uvec2 w = (unit & 1u) == 0u ? quad.xy : quad.zw;
    uint high = 0u;
    if (kType == kTypeQ3_K) {
      high = highBits(row, unit);
    }
    [[unroll]] for (uint i = 0u; i < kUnitVectors; ++i) {
      uint bytes = (w[i / 4u] >> (2u * (i % 4u))) & 0x03030303u;
      if (kType == kTypeQ3_K) {
        bytes |= ((high >> i) & 0x01010101u) << 2;
      }
      v[i] = bytesLess(bytes, kType == kTypeQ3_K ? 4 : kType == kTypeQ2_0 ? 1 : 0);
    }
  } else if (kType == kTypeQ6_K) {
    const uvec4 w = quadOf(row, unit);
    const uint at = unit / 8u * kBlockWords + 5u + (unit & 7u) * 2u;
    const uvec2 high = uvec2(sideOf(row, at), sideOf(row, at + 1u));
    [[unroll]] for (uint j = 0u; j < 4u; ++j) {
      const uint first = w[j] & 0x0f0f0f0fu;
      const uint second = (w[j] >> 4) & 0x0f0f0f0fu;
      v[j] = bytesLess(first | (((high.x >> (2u * j)) & 0x03030303u) << 4), 32);
      v[4u + j] = bytesLess(second | (((high.y >> (2u * j)) & 0x03030303u) << 4), 32);
    }
  } else if (kType == kTypeQ5_0 || kType == kTypeQ5_1 || kType == kTypeQ5_K) {
    const uvec4 w = quadOf(row, unit);
    const uint high = highBits(row, unit);
    const int offset = kType == kTypeQ5_0 ? 16 : 0;
    [[unroll]] for (uint j = 0u; j < 4u; ++j) {
      const uint first = w[j] & 0x0f0f0f0fu;
      const uint second = (w[j] >> 4) & 0x0f0f0f0fu;
      v[j] = bytesLess(first | (((high >> j) & 0x01010101u) << 4), offset);
      v[4u + j] = bytesLess(second | (((high >> (4u + j)) & 0x01010101u) << 4), offset);
    }
  } else {
    const uvec4 w = quadOf(row, unit);
    [[unroll]] for (uint j = 0u; j < 4u; ++j) {
      if (kHasTable) {
        v[j] = tableValues(nibbles(w[j]));
        v[4u + j] = tableValues(nibbles(w[j] >> 4));
      } else if (kType == kTypeQ4_0) {
        v[j] = vec4(nibbles(w[j]) - 8);
        v[4u + j] = vec4(nibbles(w[j] >> 4) - 8);
      } else {
        v[j] = vec4(nibbles(w[j]));
        v[4u + j] = vec4(nibbles(w[j] >> 4));
      }
    }
  }
}
