// The input of a product in 16 bits: lib/stage_unit.glsl. Reads it once and writes 5/8 of its bytes. Grid (units,
// tokens).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;  // a lane for each unit

layout(push_constant) uniform Push { MatmulPush push; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 3) readonly buffer In { vec4 values[]; };
layout(std430, set = 0, binding = 4) writeonly buffer Staged { uvec4 staged[]; };

#include "lib/stage_unit.glsl"

void main() {
  const uint unit = gl_GlobalInvocationID.x;
  const uint token = gl_WorkGroupID.y;
  if (unit >= push.units || token >= rowsOf(push.of_outputs)) {
    return;
  }
  const uint in_at = token * (push.in_stride / 4u) + unit * kVectors;
  vec4 v[kVectors];
  [[unroll]] for (uint i = 0u; i < kVectors; ++i) {
    v[i] = values[in_at + i];
  }
  uvec4 to[kStagedUnitWords / 4u];
  stageUnit(v, to);
  const uint at = (token * push.units + unit) * (kStagedUnitWords / 4u);
  [[unroll]] for (uint i = 0u; i < kStagedUnitWords / 4u; ++i) {
    staged[at + i] = to[i];
  }
}
