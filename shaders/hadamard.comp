// Rows multiplied by the normalised Walsh-Hadamard matrix, in place.
// Reads and writes every value once; 2 operations a value and halving of the block.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 64u;
layout(constant_id = 1) const uint kCols = 64u;

layout(push_constant) uniform Push { HadamardPush push; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) buffer Rows { float rows[]; };

shared float values[kCols];
#include "lib/hadamard.glsl"

// Grid (rows, tokens).
void main() {
  const uint t = gl_WorkGroupID.y;
  if (t >= step_.header.n_tokens) {
    return;
  }
  const uint lane = gl_LocalInvocationIndex;
  const uint at = t * push.stride + gl_WorkGroupID.x * kCols;
  for (uint i = lane; i < kCols; i += kLanes) {
    values[i] = rows[at + i];
  }
  barrier();
  hadamard(lane, 0u, kCols);
  for (uint i = lane; i < kCols; i += kLanes) {
    rows[at + i] = values[i];
  }
}
