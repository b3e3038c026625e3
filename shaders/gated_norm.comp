// Rows multiplied by a gate, before or after they are normed, or not normed: GatedNormPush says how.
// Reads 4 words a value (the second pass from cache) and the weight, writes 1; some 10 operations.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 64u;

layout(push_constant) uniform Push { GatedNormPush push; };
layout(std430, set = 0, binding = 0) readonly buffer In { float values[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Out { float result[]; };
layout(std430, set = 0, binding = 3) readonly buffer Gates { float gates[]; };
layout(std430, set = 0, binding = 4) readonly buffer Weight { float weight[]; };
#include "lib/sum_of_lanes.glsl"

float gateOf(float x) {
  if (push.gate == kGateStep) {
    return x;
  }
  if (push.gate <= kGateSigmoid) {
    return (push.gate == kGateSigmoid ? 1.0 : x) / (1.0 + exp(-x));
  }
  const float unit = push.gate == kGateSoftplus2 ? 0.69314718 : 1.0;
  const float y = x * unit;
  return (max(y, 0.0) + log(1.0 + exp(-abs(y)))) / unit;
}

// Grid (rows, tokens). A lane reads what it writes and nothing else, so that in place no lane waits for another.
void main() {
  const uint t = gl_WorkGroupID.y;
  if (t >= rowsOf(push.of_outputs)) {
    return;
  }
  const uint row_at = gl_WorkGroupID.x * push.cols;
  const uint in_at = t * push.in_stride + row_at;
  const uint gate_step = push.gate_rows != 0u ? 0u : 1u;  // from a value's gate to the next
  const uint gate_t = push.of_outputs != 0u ? outputToken(t) : t;
  const uint gate_at =
      gate_t * push.gate_stride + push.gate_first + (push.gate_rows != 0u ? gl_WorkGroupID.x : row_at);
  const uint out_at = t * push.out_stride + row_at;
  const uint weight_at = push.weight_rows != 0u ? row_at : 0u;
  float norm = 1.0;
  if (push.has_norm != 0u) {
    float squares = 0.0;
    for (uint c = gl_LocalInvocationIndex; c < push.cols; c += kLanes) {
      const float x = values[in_at + c] * (push.norm_last != 0u ? gateOf(gates[gate_at + c * gate_step]) : 1.0);
      squares += x * x;
    }
    norm = 1.0 / sqrt(sumOfLanes(squares) / float(push.cols) + push.eps);
  }
  for (uint c = gl_LocalInvocationIndex; c < push.cols; c += kLanes) {
    const float scale = push.has_norm != 0u ? norm * weight[weight_at + c] : 1.0;
    result[out_at + c] = values[in_at + c] * gateOf(gates[gate_at + c * gate_step]) * scale;
  }
}
