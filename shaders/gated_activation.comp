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

// One lane per value; grid (cols, tokens).
void main() {
  const uint t = gl_WorkGroupID.y;
  const uint c = gl_GlobalInvocationID.x;
  if (t >= step_.header.n_tokens || c >= push.cols) {
    return;
  }
  const float gate = gate_up[t * push.in_stride + c];
  const float up = gate_up[t * push.in_stride + push.up_offset + c];
  const float y = push.gelu != 0u
                      ? 2.0 * kGeluScale * (gate + kGeluCubic * gate * gate * gate)
                      : gate;
  result[t * push.out_stride + c] = gate / (1.0 + exp(-y)) * up;
}
