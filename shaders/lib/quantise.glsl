// Scales, codes, rotation and words of a stored vector in every format, to the same rounding as
// runtime/kv/quantise.cpp: every operation that decides a code is `precise`. Needs values[], scales[], kHeadDim, kLanes,
// lib/kv.glsl, lib/half.glsl.
const uint kCandidates = 16u;
const float kCandidate[kCandidates] =
    float[](-270.0, -220.0, -215.0, -210.0, -205.0, -185.0, -180.0, -175.0, -170.0, -165.0, -160.0,
            195.0, 200.0, 205.0, 210.0, 255.0);

shared float extremes[kGroups];
shared float errors[kGroups * kCandidates];

uint groupEnd(uint group) { return min((group + 1u) * kKvGroup, kHeadDim); }

// Number of borders between levels that `value` exceeds; `scale` is positive or zero.
uint int4CodeOf(float value, float scale) {
  uint code = 0u;
  [[unroll]] for (uint step = 8u; step != 0u; step /= 2u) {
    const uint k = code + step;
    precise float border = scale * ((int4Value(k - 1u) + int4Value(k)) * 0.5);
    code = value > border ? k : code;
  }
  return code;
}

uint int4Code(float value, uint scale_bits) {
  const float scale = exactHalf(scale_bits);
  return int4CodeOf(scale < 0.0 ? -value : value, abs(scale));
}

uint int4CandidateBits(uint group, uint candidate) {
  precise float scale = extremes[group] * (kCandidate[candidate] * (1.0 / 2048.0));
  return toHalfBits(scale);
}

// Leaves the f16 bits of every group's scale in scales[]. Called by all lanes.
void chooseScales(uint lane, const uint format) {
  for (uint g = lane; g < kGroups; g += kLanes) {
    float extreme = 0.0;
    for (uint i = g * kKvGroup; i < groupEnd(g); ++i) {
      extreme = abs(values[i]) > abs(extreme) ? values[i] : extreme;
    }
    extremes[g] = extreme;
    scales[g] = int8ScaleBits(abs(extreme));
  }
  barrier();
  if (format == kKvInt8) {
    return;
  }
  for (uint c = lane; c < kGroups * kCandidates; c += kLanes) {
    const uint g = c / kCandidates;
    const float scale = exactHalf(int4CandidateBits(g, c % kCandidates));
    precise float error = 0.0;
    for (uint i = g * kKvGroup; i < groupEnd(g); ++i) {
      const uint code = int4CodeOf(scale < 0.0 ? -values[i] : values[i], abs(scale));
      precise float difference = values[i] - scale * int4Value(code);
      error = error + difference * difference;
    }
    errors[c] = error;
  }
  barrier();
  for (uint g = lane; g < kGroups; g += kLanes) {
    uint best = 0u;
    for (uint c = 1u; c < kCandidates; ++c) {
      best = errors[g * kCandidates + c] < errors[g * kCandidates + best] ? c : best;
    }
    scales[g] = int4CandidateBits(g, best);
  }
  barrier();
}

#include "lib/hadamard.glsl"

// Words of a stored vector.
uint halfWord(uint word) { return packHalves(vec2(values[2u * word], values[2u * word + 1u])); }

uint int8Word(uint word) {
  uint packed = 0u;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    const uint at = 4u * word + i;
    if (at < kHeadDim) {
      packed |= int8Code(values[at], int8Inverse(scales[at / kKvGroup])) << (8u * i);
    }
  }
  return packed;
}

uint int4Word(uint word) {
  uint packed = 0u;
  [[unroll]] for (uint i = 0u; i < 8u; ++i) {
    const uint at = 8u * word + i;
    const uint code = at < kHeadDim ? int4Code(values[at], scales[at / kKvGroup]) : 0u;
    packed |= code << (4u * i);
  }
  return packed;
}

uint codeWord(const uint format, uint word) {
  if (format == kKvInt8) {
    return int8Word(word);
  }
  if (format == kKvInt4) {
    return int4Word(word);
  }
  return halfWord(word);
}
