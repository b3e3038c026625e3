// The input of a product in f16: every token's values times a power of two that brings the largest of them to
// 2^14 .. 2^15, as kStagedUnitWords describes. Reads a row twice and writes half of its bytes. Grid (tokens).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 128u;

layout(push_constant) uniform Push { MatmulPush push; };
#include "lib/half.glsl"
#include "lib/step.glsl"
layout(std430, set = 0, binding = 3) readonly buffer In { vec4 values[]; };
layout(std430, set = 0, binding = 4) writeonly buffer Staged { uvec4 staged[]; };

shared float largest[kLanes];

void main() {
  const uint token = gl_WorkGroupID.x;
  if (token >= (push.one_row != 0u ? 1u : step_.header.n_tokens)) {
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
  // Exponents as floats have them; rows that are next to nothing become zero.
  const uint exponent = max(floatBitsToUint(largest[0]) >> 23, 15u);
  const float up = uintBitsToFloat((268u - exponent) << 23);
  const uint row = token * push.units * (kStagedUnitWords / 4u);
  for (uint i = lane; i < push.units * (kUnit / 8u); i += kLanes) {
    const vec4 a = values[in_at + 2u * i] * up;
    const vec4 b = values[in_at + 2u * i + 1u] * up;
    staged[row + i] =
        uvec4(packHalves(a.xy), packHalves(a.zw), packHalves(b.xy), packHalves(b.zw));
  }
  if (lane == 0u) {
    staged[row + push.units * (kUnit / 8u)] = uvec4((exponent - 14u) << 23, 0u, 0u, 0u);
  }
}
