// out[t][r] (+)= scale * in[t][r] / sqrt(mean(in[t][r]^2) + eps) * weight, in float32; in place where both are one. Of a
// layer norm the mean of in[t][r] is taken off it first.
// What that gives is multiplied by a factor, where there is one.
// Reads 2 * cols words (the second pass from cache) and the weight, writes cols; 4 operations a value.
// SUBGROUP: lanes are summed with subgroup arithmetic first.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#include "shared/layout.h"

// Every Vulkan device allows 128 invocations.
const uint kLanes = 128u;
layout(local_size_x = 128) in;

layout(push_constant) uniform Push { RmsNormPush push; };
layout(std430, set = 0, binding = 0) readonly buffer In { float values[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) buffer Out { float result[]; };
layout(std430, set = 0, binding = 3) readonly buffer Weight { float weight[]; };
layout(std430, set = 0, binding = 4) readonly buffer Factor { float factor; };

#include "lib/sum_of_lanes.glsl"

// Grid (rows, tokens or outputs). A lane reads what it writes and nothing else, so
// that in place no lane waits for another.
void main() {
  const uint t = gl_WorkGroupID.y;
  if (t >= rowsOf(push.of_outputs)) {
    return;
  }
  const uint row_at = gl_WorkGroupID.x * push.cols;
  const uint source = push.of_outputs != 0u ? outputToken(t) : t;
  const uint in_at = source * push.in_stride + push.first + row_at;
  float mean = 0.0;
  if (push.centred != 0u) {
    for (uint c = gl_LocalInvocationIndex; c < push.cols; c += kLanes) {
      mean += values[in_at + c];
    }
    mean = sumOfLanes(mean) / float(push.cols);
    barrier();
  }
  float squares = 0.0;
  for (uint c = gl_LocalInvocationIndex; c < push.cols; c += kLanes) {
    const float x = values[in_at + c] - mean;
    squares += x * x;
  }
  const float norm = 1.0 / sqrt(sumOfLanes(squares) / float(push.cols) + push.eps) * push.scale;
  const uint out_at = t * push.out_stride + push.out_first + row_at;
  const uint weight_at = push.weight_rows != 0u ? row_at : 0u;
  const float times = push.has_factor != 0u ? factor : 1.0;
  for (uint c = gl_LocalInvocationIndex; c < push.cols; c += kLanes) {
    const float normed = (values[in_at + c] - mean) * norm * weight[weight_at + c];
    result[out_at + c] = (push.accumulate != 0u ? result[out_at + c] + normed : normed) * times;
  }
}
