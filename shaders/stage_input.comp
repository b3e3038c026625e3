// The input of a product in 16 bits: every unit's values divided by kStagedMost-th of the largest, as
// kStagedUnitWords describes. Reads it once and writes 5/8 of its bytes. Grid (units, tokens).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;  // a lane for each unit

layout(push_constant) uniform Push { MatmulPush push; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 3) readonly buffer In { vec4 values[]; };
layout(std430, set = 0, binding = 4) writeonly buffer Staged { uvec4 staged[]; };

const uint kVectors = kUnit / 4u;
// Units this small are zero: their reciprocal would not be finite.
const float kLeast = 1e-30;

void main() {
  const uint unit = gl_GlobalInvocationID.x;
  const uint token = gl_WorkGroupID.y;
  if (unit >= push.units || token >= rowsOf(push.of_outputs)) {
    return;
  }
  const uint in_at = token * (push.in_stride / 4u) + unit * kVectors;
  vec4 v[kVectors];
  vec4 most = vec4(0.0);
  [[unroll]] for (uint i = 0u; i < kVectors; ++i) {
    v[i] = values[in_at + i];
    most = max(most, abs(v[i]));
  }
  const float largest = max(max(most.x, most.y), max(most.z, most.w));
  const float inverse = largest > kLeast ? float(kStagedMost) / largest : 0.0;
  const int limit = int(kStagedMost);
  uint high[kVectors];
  uint low[kVectors];
  ivec4 sums[2] = ivec4[2](ivec4(0), ivec4(0));
  [[unroll]] for (uint i = 0u; i < kVectors; ++i) {
    const ivec4 x = clamp(ivec4(roundEven(v[i] * inverse)), -limit, limit);
    const ivec4 h = (x + 128) >> 8;
    const uvec4 high_bytes = uvec4(h) & 0xffu;
    const uvec4 low_bytes = uvec4(x) & 0xffu;  // x - 256 h, as a byte
    high[i] = high_bytes.x | high_bytes.y << 8 | high_bytes.z << 16 | high_bytes.w << 24;
    low[i] = low_bytes.x | low_bytes.y << 8 | low_bytes.z << 16 | low_bytes.w << 24;
    sums[i / 4u] += x;
  }
  const uint at = (token * push.units + unit) * (kStagedUnitWords / 4u);
  staged[at] = uvec4(high[0], high[1], high[2], high[3]);
  staged[at + 1u] = uvec4(high[4], high[5], high[6], high[7]);
  staged[at + 2u] = uvec4(low[0], low[1], low[2], low[3]);
  staged[at + 3u] = uvec4(low[4], low[5], low[6], low[7]);
  const float scale = largest > kLeast ? largest / float(kStagedMost) : 0.0;
  staged[at + 4u] = uvec4(floatBitsToUint(scale), sums[0].x + sums[0].y + sums[0].z + sums[0].w,
                          sums[1].x + sums[1].y + sums[1].z + sums[1].w, 0u);
}
