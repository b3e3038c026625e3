// Changes what experts' products gave by a value, or one for each column, of the expert: ExpertBiasPush says how.
// Reads and writes every value once; each row looks for its expert among the routes.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { ExpertBiasPush push; };
layout(std430, set = 0, binding = 0) readonly buffer Values { float values[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) buffer Out { float result[]; };
layout(std430, set = 0, binding = 3) readonly buffer Routes { uint routes[]; };

// One lane per column; grid (columns, places or some of them).
void main() {
  const uint c = gl_GlobalInvocationID.x;
  if (c >= push.cols) {
    return;
  }
  const uint places = step_.header.n_tokens * push.n_used;
  for (uint p = gl_WorkGroupID.y; p < places; p += gl_NumWorkGroups.y) {
    const uint route = routes[3u * push.routes + p];
    const uint expert = routes[route];
    const uint at = p * push.out_stride + push.out_first + c;
    result[at] = push.change == kChangeAdd ? result[at] + values[expert * push.cols + c]
                 : push.change == kChangeGated
                     ? result[at] * stepFloat(route / push.n_used, push.gate_first, push.gate_stride)
                     : result[at] * values[expert];
  }
}
