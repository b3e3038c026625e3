// out = activation(gate) * up; both activations are x / (1 + exp(-y)), with y = x for silu.
// Reads 2 words and writes 1 per value; 5 to 10 operations.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { GatedActivationPush push; };
layout(std430, set = 0, binding = 0) readonly buffer GateUp { float gate_up[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Out { float result[]; };

// One lane per value; grid (cols, rows or some of them).
void main() {
  const uint c = gl_GlobalInvocationID.x;
  if (c >= push.cols) {
    return;
  }
  const uint rows = step_.header.n_tokens * push.rows_per_token;
  for (uint row = gl_WorkGroupID.y; row < rows; row += gl_NumWorkGroups.y) {
    const float gate = gate_up[row * push.in_stride + push.gate_offset + c];
    const float up = gate_up[row * push.in_stride + push.up_offset + c];
    const float y = push.gelu != 0u
                        ? 2.0 * kGeluScale * (gate + kGeluCubic * gate * gate * gate)
                        : gate;
    result[row * push.out_stride + c] = gate / (1.0 + exp(-y)) * up;
  }
}
