// One vector for each text of the step, as PoolPush says. Reads the text's vectors once; one addition a value.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { PoolPush push; };
layout(std430, set = 0, binding = 0) readonly buffer In { float values[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Out { float result[]; };

// One lane per column; grid (columns, texts).
void main() {
  const uint i = gl_WorkGroupID.y;
  const uint c = gl_GlobalInvocationID.x;
  if (i >= step_.header.n_outputs || c >= push.cols) {
    return;
  }
  const uint last = outputToken(i);
  const uint begin = last - viewOf(last, 0u).slot;
  const uint first = step_.header.tail == kPoolLast ? last : begin;
  const uint end = step_.header.tail == kPoolFirst ? begin + 1u : last + 1u;
  float sum = 0.0;
  for (uint t = first; t < end; ++t) {
    sum += values[t * push.in_stride + c];
  }
  result[i * push.out_stride + c] = sum / float(end - first);
}
