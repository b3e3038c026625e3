// Changes what a product gave, as AddBiasPush says. Reads and writes every value once.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { AddBiasPush push; };
layout(std430, set = 0, binding = 0) readonly buffer Values { float values[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) buffer Out { float result[]; };

// Grid (columns, tokens or outputs). Lanes go on by the width of the grid where there are more columns than that.
void main() {
  const uint t = gl_WorkGroupID.y;
  if (t >= rowsOf(push.of_outputs)) {
    return;
  }
  const float gate = push.change == kChangeGated ? stepFloat(t, push.gate_first, push.gate_stride) : 0.0;
  const uint lanes = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint c = gl_GlobalInvocationID.x; c < push.cols; c += lanes) {
    const uint at = t * push.out_stride + push.out_first + c;
    const float x = result[at];
    result[at] = push.change == kChangeAdd       ? x + values[c]
                 : push.change == kChangeGated   ? x + gate * values[c]
                 : push.change == kChangeTimes   ? x * values[0]
                 : push.change == kChangeAddRows ? x + values[at]
                 : push.change == kChangeBetween ? clamp(x, values[0], values[1])
                 : push.change == kChangeTimesEach ? x * values[c]
                                                 : clamp(x, -push.limit, push.limit);
  }
}
