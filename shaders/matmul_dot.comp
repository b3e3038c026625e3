// matmul.comp with integer dot products and the input that stage_input left, or that is made here: sums of a unit are
// exact, whatever the format. Reads every weight once per kTokens tokens and 2.5 bytes of input per column and kRows rows; two
// dot products per four weights and token, plus unpacking.
//
// Workgroups, teams and lanes share the work as in matmul.comp.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 64u;
layout(constant_id = 1) const uint kRows = 2u;
layout(constant_id = 2) const uint kTokens = 1u;
layout(constant_id = 3) const uint kTeamLanes = 16u;

layout(push_constant) uniform Push {
  MatmulPush push;
  layout(offset = 64) uvec4 maker[4];
};
#include "lib/step.glsl"
#include "lib/weights_packed.glsl"
#include "lib/made_row.glsl"
#include "lib/stage_unit.glsl"
layout(std430, set = 0, binding = 2) buffer Out { float result[]; };
layout(std430, set = 0, binding = 4) readonly buffer Staged { uvec4 staged[]; };

// OpSDotKHR of SPV_KHR_integer_dot_product; capabilities DotProductKHR, DotProductInput4x8BitPackedKHR.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018],
                  id = 4450) int packedDot(uint a, uint b, spirv_literal int format);
const int kPacked4x8 = 0;

shared float partial[kLanes * kRows * kTokens];  // [row][token][lane]

int dot16(uvec4 a, uvec4 b) {
  return (packedDot(a.x, b.x, kPacked4x8) + packedDot(a.y, b.y, kPacked4x8)) +
         (packedDot(a.z, b.z, kPacked4x8) + packedDot(a.w, b.w, kPacked4x8));
}

// A quad of a unit's staged input.
uvec4 stagedQuad(uint token, uint first, uint unit, uint quad) {
  if (kMakes) {
    return span[(unit - first) * kSpanPitch + quad];
  }
  return staged[(token * push.units + unit) * (kStagedUnitWords / 4u) + quad];
}

// A lane a unit, in the place of its floats.
void stageSpan(uint first, uint lane) {
  for (uint unit = lane; unit < min(kSpanLength, push.units - first); unit += kLanes) {
    vec4 v[kVectors];
    [[unroll]] for (uint i = 0u; i < kVectors; ++i) {
      v[i] = uintBitsToFloat(span[unit * kSpanPitch + i]);
    }
    uvec4 to[kStagedUnitWords / 4u];
    stageUnit(v, to);
    [[unroll]] for (uint i = 0u; i < kStagedUnitWords / 4u; ++i) {
      span[unit * kSpanPitch + i] = to[i];
    }
  }
  barrier();
}

// Grid (token tiles, row tiles, further row tiles).
void main() {
  const uint n_tokens = rowsOf(push.of_outputs);
  const uint first_token = gl_WorkGroupID.x * kTokens;
  const uint tile = gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y;
  const uint tile_row = tile * kRows * kTeamLanes;
  if (first_token >= n_tokens || tile_row >= push.rows) {
    return;
  }
  const uint lane = gl_LocalInvocationIndex;
  const uint teams = kLanes / kTeamLanes;
  WeightRow rows[kRows];
  float sums[kRows * kTokens];
  // Rows and tokens past the end repeat the last one; their sums are never written.
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    const uint row = min(tile_row + lane % kTeamLanes + r * kTeamLanes, push.rows - 1u);
    rows[r] = weightRow(push.group_words, push.side_word, row);
  }
  [[unroll]] for (uint i = 0u; i < kRows * kTokens; ++i) {
    sums[i] = 0.0;
  }
  float factor = 1.0;
  if (kMakes) {
    factor = rowFactor(first_token, lane);
  }
  const uint units = kMakes ? kSpanLength : push.units;
  uint first = 0u;
  do {
    if (kMakes) {
      makeSpan(first_token, first, factor, lane);
      stageSpan(first, lane);
    }
    const uint end = min(first + units, push.units);
    for (uint unit = first + lane / kTeamLanes; unit < end; unit += teams) {
      // A row's weights are the same for all tokens, as compilers see; what they are kept in between is theirs to
      // say, since arrays of them are slow where compilers are simple.
      [[unroll]] for (uint t = 0u; t < kTokens; ++t) {
        const uint token = min(first_token + t, n_tokens - 1u);
        const uvec4 high0 = stagedQuad(token, first, unit, 0u);
        const uvec4 high1 = stagedQuad(token, first, unit, 1u);
        const uvec4 low0 = stagedQuad(token, first, unit, 2u);
        const uvec4 low1 = stagedQuad(token, first, unit, 3u);
        const uvec4 rest = stagedQuad(token, first, unit, 4u);
        const float scale = uintBitsToFloat(rest.x);
        const ivec2 totals = ivec2(rest.yz);
        [[unroll]] for (uint r = 0u; r < kRows; ++r) {
          uvec4 w0;
          uvec4 w1;
          loadPacked(rows[r], unit, w0, w1);
          const UnitScale s = unitScale(rows[r], unit);
          const ivec2 dots = ivec2(dot16(w0, high0), dot16(w1, high1)) * 256 +
                             ivec2(dot16(w0, low0), dot16(w1, low1)) - kPackedOffset * totals;
          float sum = s.scale.x * float(kHalfScales ? dots.x : dots.x + dots.y);
          if (kHalfScales) {
            sum += s.scale.y * float(dots.y);
          }
          if (kHasMinimum && kHalfScales) {
            sum -= s.minimum.x * float(totals.x) + s.minimum.y * float(totals.y);
          } else if (kHasMinimum) {
            sum -= s.minimum.x * float(totals.x + totals.y);
          }
          sums[r * kTokens + t] += sum * scale;
        }
      }
    }
    first += units;
  } while (kMakes && first < push.units);
  [[unroll]] for (uint i = 0u; i < kRows * kTokens; ++i) {
    partial[i * kLanes + lane] = sums[i];
  }
  barrier();
  for (uint i = lane; i < kRows * kTokens * kTeamLanes; i += kLanes) {
    const uint pair = i / kTeamLanes;  // row of a lane and token
    const uint row = tile_row + pair / kTokens * kTeamLanes + i % kTeamLanes;
    const uint token = first_token + pair % kTokens;
    if (row >= push.rows || token >= n_tokens) {
      continue;
    }
    float sum = 0.0;
    for (uint team = 0u; team < teams; ++team) {
      sum += partial[pair * kLanes + team * kTeamLanes + i % kTeamLanes];
    }
    const uint at = token * push.out_stride + push.out_first + row;
    result[at] = push.accumulate != 0u ? result[at] + sum : sum;
  }
}
