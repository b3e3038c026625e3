// out[t] (+)= scale * weights[row of token t], for the tokens whose row lies in this slice: EmbedPush says which it is.
// Reads one weight row and writes cols words per token; one multiplication per value.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { EmbedPush push; };
#include "lib/step.glsl"
#include "lib/weights.glsl"
layout(std430, set = 0, binding = 2) buffer Out { float result[]; };

// As the file's format defines it, to the bit where push.scale is 1. (Float types are not
// multiplied then: a device may flush subnormals when it computes.)
float scaled(float v, UnitScale s, uint i) {
#ifdef HALF_SCALES
  const uint h = i / 16u;
#else
  const uint h = 0u;
#endif
#if defined(WEIGHT_F32) || defined(WEIGHT_F16) || defined(WEIGHT_BF16)
  return push.scale == 1.0 ? v : push.scale * v;
#elif defined(HAS_MINIMUM)
  return push.scale * (s.scale[h] * v - s.minimum[h]);
#else
  return push.scale * (s.scale[h] * v);
#endif
}

// One lane per unit of a row; grid (units, tokens).
void main() {
  prepareWeights(gl_LocalInvocationIndex, gl_WorkGroupSize.x);
  const uint t = gl_WorkGroupID.y;
  const uint unit = gl_GlobalInvocationID.x;
  const uint first_col = unit * kUnit;
  if (t >= step_.header.n_tokens || first_col >= push.cols) {
    return;
  }
  uint row_of_token = push.of_step == kEmbedRows ? t : tokenId(t);
  if (push.of_step == kEmbedPositions) {
    const View view = viewOf(t, 0u);
    row_of_token = view.n_sinks + view.count - 1u;
  }
  if (push.of_step == kEmbedSlots) {
    row_of_token = viewOf(t, 0u).slot;
  }
  if (push.of_step == kEmbedPlaces) {
    row_of_token = tokenPlace(t);
  }
  const uint index = row_of_token - (push.of_step == kEmbedRows ? 0u : push.first_row);  // wraps for rows before
  if (index >= push.rows) {
    return;
  }
  const WeightRow row = weightRow(push.group_words, push.side_word, index);
  const UnitScale s = unitScale(row, unit);
  vec4 v[kUnitVectors];
  loadUnit(row, unit, v);
  const uint at = t * push.out_stride + first_col;
  [[unroll]] for (uint i = 0u; i < kUnit; ++i) {
    if (first_col + i < push.cols) {
      const float value = scaled(v[i / 4u][i % 4u], s, i);
      result[at + i] = push.accumulate != 0u ? result[at + i] + value : value;
    }
  }
}
