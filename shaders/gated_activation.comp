// out = scale * activation(gate) * up, as GatedActivationPush says.
// Reads 2 words and writes 1 per value; 5 to 10 operations.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"
#include "lib/activation.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { GatedActivationPush push; };
layout(std430, set = 0, binding = 0) readonly buffer GateUp { float gate_up[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Out { float result[]; };

float activated(float x) {
  switch (push.activation) {
    case kGelu:
      return ORIEL_GELU(x);
    case kGeluErf:
      return 0.5 * x * (1.0 + erfOf(0.70710678 * x));
    case kRelu:
      return max(x, 0.0);
    case kReluSquared:
      return max(x, 0.0) * max(x, 0.0);
    case kClampedSilu:
      return min(x, push.a) / (1.0 + exp(-push.b * min(x, push.a)));
    case kXielu:
      return push.c * x + (x > 0.0 ? push.a * x * x : (exp(min(x, push.d)) - 1.0 - x) * push.b);
    case kTanh:
      return tanhOf(x);
    default:
      return ORIEL_SILU(x);
  }
}

// One lane per value; grid (cols, rows or some of them).
void main() {
  const uint c = gl_GlobalInvocationID.x;
  if (c >= push.cols) {
    return;
  }
  const uint rows = step_.header.n_tokens * push.rows_per_token;
  for (uint row = gl_WorkGroupID.y; row < rows; row += gl_NumWorkGroups.y) {
    const float gate = gate_up[row * push.in_stride + push.gate_offset + c];
    float up = 1.0;
    if (push.plain == 0u) {
      up = gate_up[row * push.in_stride + push.up_offset + c];
      up = push.activation == kClampedSilu ? clamp(up, -push.a, push.a) + 1.0 : up;
    }
    result[row * push.out_stride + c] = activated(gate) * up * push.scale;
  }
}
