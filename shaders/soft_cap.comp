// x becomes cap * tanh(x / cap), in place, in every output's row.
// Reads and writes every value once; some 15 operations a value.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"
#include "lib/activation.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 64u;

layout(push_constant) uniform Push { SoftCapPush push; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) buffer Out { float result[]; };

// Grid (some of the columns, rows).
void main() {
  const uint row = gl_WorkGroupID.y;
  if (row >= step_.header.n_outputs) {
    return;
  }
  for (uint c = gl_GlobalInvocationID.x; c < push.cols; c += gl_NumWorkGroups.x * kLanes) {
    const uint at = row * push.stride + c;
    result[at] = push.cap * tanhOf(result[at] / push.cap);
  }
}
