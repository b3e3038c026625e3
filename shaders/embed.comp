// out[t] = scale * weights[token[t]], for the tokens whose row lies in this slice.
// Reads one weight row and writes cols words per token; one multiplication per value.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { EmbedPush push; };
#include "lib/step.glsl"
#include "lib/weights.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Out { float result[]; };

// One lane per unit of a row; grid (units, tokens).
void main() {
  const uint t = gl_WorkGroupID.y;
  const uint first_col = gl_GlobalInvocationID.x * kUnit;
  if (t >= step_.header.n_tokens || first_col >= push.cols) {
    return;
  }
  const uint token = step_.tokens[t].token;
  if (token < push.first_row || token - push.first_row >= push.rows) {
    return;
  }
  const uint row = token - push.first_row;
  const uint unit = first_col / kUnit;
  const float scale =
      push.scale * unitScale(push.scales_word, push.blocks_per_row, row, unit);
  vec4 low, high;
  loadUnit(push.words_per_row, row, unit, low, high);
  const uint count = min(kUnit, push.cols - first_col);
  const uint at = t * push.out_stride + first_col;
  for (uint i = 0u; i < count; ++i) {
    result[at + i] = scale * (i < 4u ? low[i] : high[i - 4u]);
  }
}
