// Binding 0 of the kernels that read weights: a slice packed as shared/layout.h says, one unit of
// kUnit values at a time. WEIGHT_<TYPE> chooses the format. Integers are converted from `int`, which
// CPUs do in one instruction; `uint` takes them several.
#include "lib/half.glsl"

#if defined(WEIGHT_Q4_0)
#define UnitWords uint
const uint kWordsPerUnit = 1u;
#elif defined(WEIGHT_Q8_0)
#define UnitWords uvec2
const uint kWordsPerUnit = 2u;
#else
#define UnitWords uvec4  // F32 takes two of them
const uint kWordsPerUnit = 4u;
#endif

layout(std430, set = 0, binding = 0) readonly buffer Weights {
  UnitWords weight_units[];
};

#if defined(WEIGHT_Q4_0) || defined(WEIGHT_Q8_0)
layout(std430, set = 0, binding = 0) readonly buffer Scales {
  uint scale_words[];
};

float unitScale(uint scales_word, uint blocks_per_row, uint row, uint unit) {
  const uint scale = row * blocks_per_row + unit / (kQuantBlock / kUnit);
  return exactHalf((scale_words[scales_word + scale / 2u] >> (16u * (scale & 1u))) & 0xffffu);
}
#else
float unitScale(uint scales_word, uint blocks_per_row, uint row, uint unit) {
  return 1.0;
}
#endif

// Values 0-3 and 4-7 of a unit, still to be multiplied by unitScale.
void loadUnit(uint words_per_row, uint row, uint unit, out vec4 low, out vec4 high) {
#if defined(WEIGHT_F32)
  const uint at = row * (words_per_row / kWordsPerUnit) + 2u * unit;
  low = uintBitsToFloat(weight_units[at]);
  high = uintBitsToFloat(weight_units[at + 1u]);
#else
  const UnitWords words = weight_units[row * (words_per_row / kWordsPerUnit) + unit];
#if defined(WEIGHT_F16)
  low = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
  high = vec4(unpackHalf2x16(words.z), unpackHalf2x16(words.w));
#elif defined(WEIGHT_BF16)
  const uvec4 even = words << 16;
  const uvec4 odd = words & 0xffff0000u;
  low = uintBitsToFloat(uvec4(even.x, odd.x, even.y, odd.y));
  high = uintBitsToFloat(uvec4(even.z, odd.z, even.w, odd.w));
#elif defined(WEIGHT_Q8_0)
  const ivec2 bytes = ivec2(words);
  low = vec4(ivec4(bytes.x << 24, bytes.x << 16, bytes.x << 8, bytes.x) >> 24);
  high = vec4(ivec4(bytes.y << 24, bytes.y << 16, bytes.y << 8, bytes.y) >> 24);
#else  // Q4_0
  low = vec4((ivec4(uvec4(words, words >> 4, words >> 8, words >> 12) & 15u)) - 8);
  high = vec4((ivec4(uvec4(words >> 16, words >> 20, words >> 24, words >> 28) & 15u)) - 8);
#endif
#endif
}
