// Joins the splits of attention: partial results weighted by exp(maximum - largest maximum). Splits that no
// slot fell into were not run.
// Reads splits * (head_dim + 2) words and writes head_dim per token and head; 2 operations a word.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 64u;

layout(push_constant) uniform Push { AttentionMergePush push; };
layout(std430, set = 0, binding = 0) readonly buffer Partials { float partials[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Out { float result[]; };

// One workgroup per head and token; grid (heads, tokens).
void main() {
  const uint head = gl_WorkGroupID.x;
  const uint t = gl_WorkGroupID.y;
  if (t >= step_.header.n_tokens) {
    return;
  }
  const View view = viewOf(t, push.view);
  const uint seen = view.n_sinks + view.count;
  const uint splits = clamp((seen + push.split_slots - 1u) / push.split_slots, 1u, push.splits);
  const uint words = push.head_dim + kPartialExtra;
  const uint first = (t * push.n_heads + head) * push.splits * words;
  float maximum = partials[first + push.head_dim];
  for (uint s = 1u; s < splits; ++s) {
    maximum = max(maximum, partials[first + s * words + push.head_dim]);
  }
  for (uint d = gl_LocalInvocationIndex; d < push.head_dim; d += kLanes) {
    float value = 0.0;
    float sum = 0.0;
    for (uint s = 0u; s < splits; ++s) {
      const uint at = first + s * words;
      const float weight = exp(partials[at + push.head_dim] - maximum);
      value += weight * partials[at + d];
      sum += weight * partials[at + push.head_dim + 1u];
    }
    result[t * push.out_stride + head * push.head_dim + d] = sum > 0.0 ? value / sum : 0.0;
  }
}
