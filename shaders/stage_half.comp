// The input of a product in f16: every token's values times a power of two that brings the largest of them to
// 2^kTop .. 2^(kTop + 1), as kStagedUnitWords describes. Reads a row twice (three times with sums) and writes half
// of its bytes. Grid (tokens).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 128u;
layout(constant_id = 1) const uint kTop = 14u;
layout(constant_id = 2) const bool kForHalves = false;  // else for matrix units

layout(push_constant) uniform Push { MatmulPush push; };
#include "lib/half.glsl"
#include "lib/step.glsl"
layout(std430, set = 0, binding = 3) readonly buffer In { vec4 values[]; };
layout(std430, set = 0, binding = 4) writeonly buffer Staged { uvec4 staged[]; };

shared float largest[kLanes];

void main() {
  const uint token = gl_WorkGroupID.x;
  if (token >= rowsOf(push.of_outputs)) {
    return;
  }
  const uint lane = gl_LocalInvocationIndex;
  const uint in_at = token * (push.in_stride / 4u);
  vec4 most = vec4(0.0);
  for (uint i = lane; i < push.units * (kUnit / 4u); i += kLanes) {
    most = max(most, abs(values[in_at + i]));
  }
  largest[lane] = max(max(most.x, most.y), max(most.z, most.w));
  barrier();
  for (uint half_ = kLanes / 2u; half_ != 0u; half_ /= 2u) {
    if (lane < half_) {
      largest[lane] = max(largest[lane], largest[lane + half_]);
    }
    barrier();
  }
  const vec2 scales = halfScales(largest[0], kTop);
  const float up = scales.x;
  const uint down = floatBitsToUint(scales.y);
  const uint row = token * push.units * (kStagedUnitWords / 4u);
  const uint rest = row + push.units * (kUnit / 8u);
  for (uint i = lane; i < push.units * (kUnit / 8u); i += kLanes) {
    vec4 a = values[in_at + 2u * i] * up;
    vec4 b = values[in_at + 2u * i + 1u] * up;
    if (kForHalves) {
      a = a.xzyw;
      b = b.xzyw;
    }
    staged[row + i] =
        uvec4(packHalves(a.xy), packHalves(a.zw), packHalves(b.xy), packHalves(b.zw));
  }
  if (kForHalves) {
    for (uint unit = lane; unit < push.units; unit += kLanes) {
      vec4 sums[2] = vec4[2](vec4(0.0), vec4(0.0));
      [[unroll]] for (uint i = 0u; i < kUnit / 4u; ++i) {
        sums[i / 4u] += values[in_at + unit * (kUnit / 4u) + i] * up;
      }
      const vec2 total = vec2((sums[0].x + sums[0].y) + (sums[0].z + sums[0].w),
                              (sums[1].x + sums[1].y) + (sums[1].z + sums[1].w));
      staged[rest + unit] = uvec4(down, floatBitsToUint(total), 0u);
    }
  } else if (lane == 0u) {
    staged[rest] = uvec4(down, 0u, 0u, 0u);
  }
}
