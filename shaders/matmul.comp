// out[t][out_first + r] (+)= weights[r] . in[t], accumulated in float32.
// Reads every weight once per kTokens tokens and the inputs once per kRows rows of a team; 2
// operations per weight and token, plus unpacking once per weight and kTokens tokens.
//
// A team of lanes owns kRows rows: lane i takes units i, i + lanes, ... of all of them.
// SUBGROUP: a team is a subgroup of whatever size; else kTeams equal parts of the workgroup.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#include "shared/layout.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 64u;  // the workgroup's size
layout(constant_id = 1) const uint kRows = 4u;    // rows a team works on at a time
layout(constant_id = 2) const uint kTokens = 1u;  // tokens a workgroup works on
layout(constant_id = 3) const uint kTeams = 4u;   // a workgroup covers kTeams * kRows rows

layout(push_constant) uniform Push { MatmulPush push; };
#include "lib/step.glsl"
#include "lib/weights.glsl"
layout(std430, set = 0, binding = 2) buffer Out { float result[]; };
layout(std430, set = 0, binding = 3) readonly buffer In { vec4 values[]; };

float sums[kRows * kTokens];  // [row][token]

// Rows and tokens past the end repeat the last one; their sums are never written.
void accumulate(uint first_row, uint first_token, uint n_tokens, uint lane, uint lanes) {
  uint rows[kRows];
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    rows[r] = min(first_row + r, push.rows - 1u);
  }
  uint in_at[kTokens];
  [[unroll]] for (uint t = 0u; t < kTokens; ++t) {
    in_at[t] = min(first_token + t, n_tokens - 1u) * (push.in_stride / 4u);
  }
  [[unroll]] for (uint i = 0u; i < kRows * kTokens; ++i) {
    sums[i] = 0.0;
  }
  for (uint unit = lane; unit < push.units; unit += lanes) {
    vec4 in_low[kTokens];
    vec4 in_high[kTokens];
    [[unroll]] for (uint t = 0u; t < kTokens; ++t) {
      in_low[t] = values[in_at[t] + 2u * unit];
      in_high[t] = values[in_at[t] + 2u * unit + 1u];
    }
    [[unroll]] for (uint r = 0u; r < kRows; ++r) {
      vec4 low, high;
      loadUnit(push.words_per_row, rows[r], unit, low, high);
      const float scale = unitScale(push.scales_word, push.blocks_per_row, rows[r], unit);
      [[unroll]] for (uint t = 0u; t < kTokens; ++t) {
        sums[r * kTokens + t] += scale * (dot(low, in_low[t]) + dot(high, in_high[t]));
      }
    }
  }
}

void write(uint row, uint token, uint n_tokens, float sum) {
  if (row < push.rows && token < n_tokens) {
    const uint at = token * push.out_stride + push.out_first + row;
    result[at] = push.accumulate != 0u ? result[at] + sum : sum;
  }
}

#ifndef SUBGROUP
shared float partial[kLanes * kRows * kTokens];  // [row][token][lane]
#endif

// Grid (token tiles, row groups, further row groups).
void main() {
  const uint n_tokens = push.one_row != 0u ? 1u : step_.header.n_tokens;
  const uint first_token = gl_WorkGroupID.x * kTokens;
  const uint group = gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y;
  const uint group_row = group * kTeams * kRows;
  if (first_token >= n_tokens || group_row >= push.rows) {
    return;
  }
#ifdef SUBGROUP
  // Counted, not taken from gl_SubgroupSize: a driver may run subgroups narrower than it declares.
  const uint lane = subgroupExclusiveAdd(1u);
  const uint lanes = subgroupAdd(1u);
  for (uint team = gl_SubgroupID; team < kTeams; team += gl_NumSubgroups) {
    const uint first_row = group_row + team * kRows;
    accumulate(first_row, first_token, n_tokens, lane, lanes);
    [[unroll]] for (uint r = 0u; r < kRows; ++r) {
      [[unroll]] for (uint t = 0u; t < kTokens; ++t) {
        const float sum = subgroupAdd(sums[r * kTokens + t]);
        if (lane == 0u) {
          write(first_row + r, first_token + t, n_tokens, sum);
        }
      }
    }
  }
#else
  const uint lanes = kLanes / kTeams;
  const uint team = gl_LocalInvocationIndex / lanes;
  const uint lane = gl_LocalInvocationIndex % lanes;
  accumulate(group_row + team * kRows, first_token, n_tokens, lane, lanes);
  [[unroll]] for (uint i = 0u; i < kRows * kTokens; ++i) {
    partial[i * kLanes + gl_LocalInvocationIndex] = sums[i];
  }
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < kTeams * kRows * kTokens; i += kLanes) {
    const uint row = i / kTokens;  // of the workgroup
    const uint token = i % kTokens;
    const uint at = ((row % kRows) * kTokens + token) * kLanes + (row / kRows) * lanes;
    float sum = 0.0;
    for (uint j = 0u; j < lanes; ++j) {
      sum += partial[at + j];
    }
    write(group_row + row, first_token + token, n_tokens, sum);
  }
#endif
}
