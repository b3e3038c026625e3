// keys[b] = the largest key of the logits b, b + blocks, b + 2 blocks, ...
// Reads n_vocab words, neighbouring lanes neighbouring ones, and writes one a block; a few operations a word.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;  // a lane for each block

layout(push_constant) uniform Push { TopPush push; };
layout(std430, set = 0, binding = 0) readonly buffer Logits { uint logits[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Keys { uint keys[]; };
#include "lib/step.glsl"
#include "lib/top.glsl"

void main() {
  const uint block = gl_GlobalInvocationID.x;
  const uint i = gl_WorkGroupID.y;
  if (block >= push.blocks || !isWanted(i)) {
    return;
  }
  const uint row = outputOf(i) * push.n_vocab;
  uint most = 0u;
  for (uint id = block; id < push.n_vocab; id += push.blocks) {
    most = max(most, keyOf(logits[row + id]));
  }
  keys[i * push.blocks + block] = most;
}
