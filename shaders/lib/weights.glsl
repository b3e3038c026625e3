// Binding 0 of the kernels that read weights: a slice packed as shared/layout.h says, one unit of a row
// at a time. WEIGHT_<TYPE> chooses the format. Integers are converted from `int`, which CPUs do in one
// instruction; `uint` takes them several.
#include "lib/half.glsl"

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

uvec4 quadOf(WeightRow row, uint quad) { return weight_quads[row.quad + quad * kGroupRows]; }
uint sideOf(WeightRow row, uint word) { return weight_words[row.side + word * kGroupRows]; }

float pairScale(WeightRow row, uint unit) {
  return exactHalf((sideOf(row, unit / 2u) >> (16u * (unit & 1u))) & 0xffffu);
}

// What the values of a unit are multiplied with.
float unitScale(WeightRow row, uint unit) {
#if defined(WEIGHT_Q8_0) || defined(WEIGHT_Q4_0)
  return pairScale(row, unit);
#else
  return 1.0;
#endif
}

// The values of a unit, still to be multiplied by unitScale.
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
#elif defined(WEIGHT_Q4_0)
  const uvec4 w = quadOf(row, unit);
  [[unroll]] for (uint j = 0u; j < 4u; ++j) {
    v[j] = vec4(ivec4(uvec4(w[j], w[j] >> 8, w[j] >> 16, w[j] >> 24) & 15u) - 8);
    v[4u + j] = vec4(ivec4(uvec4(w[j] >> 4, w[j] >> 12, w[j] >> 20, w[j] >> 28) & 15u) - 8);
  }
#endif
}
