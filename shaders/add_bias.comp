// out[t][out_first + i] += bias[i]. Reads and writes every value once.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { AddBiasPush push; };
layout(std430, set = 0, binding = 0) readonly buffer Bias { float bias[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) buffer Out { float result[]; };

// Grid (columns, tokens).
void main() {
  const uint t = gl_WorkGroupID.y;
  const uint c = gl_GlobalInvocationID.x;
  if (t < step_.header.n_tokens && c < push.cols) {
    result[t * push.out_stride + push.out_first + c] += bias[c];
  }
}
