// Copies the logits of each session's last output to where they stay while other sessions step.
// Reads and writes every value once.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 64u;

layout(push_constant) uniform Push { KeepLogitsPush push; };
layout(std430, set = 0, binding = 0) readonly buffer Logits { float logits[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Kept { float kept[]; };

// Grid (some of the columns, outputs).
void main() {
  const uint row = gl_WorkGroupID.y;
  const uint n_outputs = step_.header.n_outputs;
  if (row >= n_outputs) {
    return;
  }
  const uint session = tokenBase(outputToken(row));
  if (row + 1u < n_outputs && tokenBase(outputToken(row + 1u)) == session) {
    return;
  }
  for (uint c = gl_GlobalInvocationID.x; c < push.n_vocab; c += gl_NumWorkGroups.x * kLanes) {
    kept[session * push.n_vocab + c] = logits[row * push.n_vocab + c];
  }
}
