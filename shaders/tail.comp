// out[0] = in[header.tail]. Reads and writes `cols` words.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { TailPush push; };
layout(std430, set = 0, binding = 0) buffer In { float rows[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) buffer Out { float result[]; };

// Grid (columns).
void main() {
  const uint c = gl_GlobalInvocationID.x;
  if (c < push.cols) {
    result[c] = rows[step_.header.tail * push.stride + c];
  }
}
