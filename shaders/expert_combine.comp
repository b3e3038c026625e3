// out[t] (+)= sum over k of weight * in[place of route n_used * t + k], in the order of k.
// Reads n_used words of inputs, and twice as many of routes, for each value; 2 operations each.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { ExpertCombinePush push; };
layout(std430, set = 0, binding = 0) readonly buffer In { float values[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) buffer Out { float result[]; };
layout(std430, set = 0, binding = 3) readonly buffer Routes { uint routes[]; };

// One lane per column; grid (columns, tokens).
void main() {
  const uint t = gl_WorkGroupID.y;
  const uint c = gl_GlobalInvocationID.x;
  if (t >= step_.header.n_tokens || c >= push.cols) {
    return;
  }
  float sum = 0.0;
  for (uint k = 0u; k < push.n_used; ++k) {
    const uint route = t * push.n_used + k;
    const float weight = uintBitsToFloat(routes[push.routes + route]);
    sum += weight * values[routes[2u * push.routes + route] * push.in_stride + c];
  }
  const uint at = t * push.out_stride + push.out_first + c;
  result[at] = push.accumulate != 0u ? result[at] + sum : sum;
}
