// matmul.comp for many tokens on matrix units (VK_KHR_cooperative_matrix), with the input that stage_half left:
// weights are rounded to f16 on their way, sums are float32. Reads every weight once per kTileTokens tokens,
// the staged inputs once per kTileRows rows; 2 operations per weight and token, plus unpacking once per
// weight and kTileTokens tokens.
//
// A workgroup's tile is divided among its subgroups, kSubgroupRows of them along the rows; each holds kMatRows
// times kMatTokens sums of kM rows by kN tokens. Grid (token tiles, row tiles, further row tiles).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 128u;  // or 256: whole subgroups, kSubgroups of them
layout(constant_id = 1) const uint kM = 16u;       // what the device's matrices measure
layout(constant_id = 2) const uint kN = 16u;
layout(constant_id = 3) const uint kK = 16u;       // divides kUnit
layout(constant_id = 4) const uint kMatRows = 2u;
layout(constant_id = 5) const uint kMatTokens = 2u;
layout(constant_id = 6) const uint kSubgroupRows = 2u;
layout(constant_id = 7) const uint kSubgroups = 4u;

layout(push_constant) uniform Push { MatmulPush push; };
#include "lib/step.glsl"
#include "lib/weights.glsl"
layout(std430, set = 0, binding = 2) buffer Out { float result[]; };
layout(std430, set = 0, binding = 4) readonly buffer Staged { uvec4 staged[]; };

const uint kTileRows = kSubgroupRows * kMatRows * kM;
const uint kTileTokens = kSubgroups / kSubgroupRows * kMatTokens * kN;
const uint kStepUnits = 256u / kLanes;  // units of a row in shared memory at a time
const uint kStepPieces = kStepUnits * kUnit / 4u;
const uint kRowPieces = kStepPieces + 2u;  // so that rows begin in different banks
const uint kStepQuads = kStepPieces / 2u;  // of the staged input of a token
const uint kOwnUnits = (kTileRows * kStepUnits + kLanes - 1u) / kLanes;
const uint kTurns = (kM * kN * kSubgroups + kLanes - 1u) / kLanes;  // of a subgroup, to write a matrix
const uint kOwnQuads = (kTileTokens * kStepQuads + kLanes - 1u) / kLanes;

shared f16vec4 weight_tile[kTileRows * kRowPieces];   // [row][column]
shared f16vec4 input_tile[kTileTokens * kRowPieces];  // [token][column]
shared float sum_tiles[kSubgroups * kM * kN];         // [subgroup][token][row]

// A step's weights and inputs of this lane, read while the matrix units work on the step before.
struct Held {
  f16vec4 weights[kOwnUnits * kUnitVectors];
  uvec4 inputs[kOwnQuads];
};

uint stagedRow(uint token) { return token * push.units * (kStagedUnitWords / 4u); }

// Rows past the end repeat the last one; their sums are never written. Columns past the end are zeros.
void fetch(uint tile_row, uint first_token, uint n_tokens, uint unit, uint lane, out Held held) {
  [[unroll]] for (uint own = 0u; own < kOwnUnits; ++own) {
    const uint i = own * kLanes + lane;
    const uint from = unit + i / kTileRows;
    const uint to = own * kUnitVectors;
    [[unroll]] for (uint v = 0u; v < kUnitVectors; ++v) {
      held.weights[to + v] = f16vec4(0.0);
    }
    if (i < kTileRows * kStepUnits && from < push.units) {
      const WeightRow row =
          weightRow(push.group_words, push.side_word, min(tile_row + i % kTileRows, push.rows - 1u));
      vec4 values[kUnitVectors];
      loadUnit(row, from, values);
      const UnitScale s = unitScale(row, from);
      [[unroll]] for (uint v = 0u; v < kUnitVectors; ++v) {
        const uint h = kHalfScales ? v / 4u : 0u;
        vec4 scaled = s.scale[h] * values[v];
        if (kHasMinimum) {
          scaled -= s.minimum[h];
        }
        held.weights[to + v] = f16vec4(scaled);
      }
    }
  }
  [[unroll]] for (uint own = 0u; own < kOwnQuads; ++own) {
    const uint i = own * kLanes + lane;
    const uint token = first_token + i / kStepQuads;
    const uint quad = unit * (kUnit / 8u) + i % kStepQuads;
    held.inputs[own] = i < kTileTokens * kStepQuads && token < n_tokens && quad < push.units * (kUnit / 8u)
                           ? staged[stagedRow(token) + quad]
                           : uvec4(0u);
  }
}

void store(Held held, uint lane) {
  [[unroll]] for (uint own = 0u; own < kOwnUnits; ++own) {
    const uint i = own * kLanes + lane;
    if (i < kTileRows * kStepUnits) {
      const uint at = i % kTileRows * kRowPieces + i / kTileRows * kUnitVectors;
      [[unroll]] for (uint v = 0u; v < kUnitVectors; ++v) {
        weight_tile[at + v] = held.weights[own * kUnitVectors + v];
      }
    }
  }
  [[unroll]] for (uint own = 0u; own < kOwnQuads; ++own) {
    const uint i = own * kLanes + lane;
    if (i < kTileTokens * kStepQuads) {
      const uint at = i / kStepQuads * kRowPieces + i % kStepQuads * 2u;
      const uvec4 w = held.inputs[own];
      input_tile[at] = f16vec4(unpackFloat2x16(w.x), unpackFloat2x16(w.y));
      input_tile[at + 1u] = f16vec4(unpackFloat2x16(w.z), unpackFloat2x16(w.w));
    }
  }
}

void main() {
  const uint n_tokens = rowsOf(push.of_outputs);
  const uint first_token = gl_WorkGroupID.x * kTileTokens;
  const uint tile = gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y;
  const uint tile_row = tile * kTileRows;
  if (first_token >= n_tokens || tile_row >= push.rows) {
    return;
  }
  const uint lane = gl_LocalInvocationIndex;
  const uint first_row_matrix = gl_SubgroupID % kSubgroupRows * kMatRows;
  const uint first_token_matrix = gl_SubgroupID / kSubgroupRows * kMatTokens;
  const bool has_tokens = first_token + first_token_matrix * kN < n_tokens;  // not so after a short prompt
  coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator> sums[kMatRows * kMatTokens];
  [[unroll]] for (uint i = 0u; i < kMatRows * kMatTokens; ++i) {
    sums[i] = coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>(0.0);
  }
  Held held;
  fetch(tile_row, first_token, n_tokens, 0u, lane, held);
  for (uint unit = 0u; unit < push.units; unit += kStepUnits) {
    store(held, lane);
    barrier();
    fetch(tile_row, first_token, n_tokens, unit + kStepUnits, lane, held);
    if (has_tokens) {
      for (uint k = 0u; k < kStepUnits * kUnit; k += kK) {
        coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB> inputs[kMatTokens];
        [[unroll]] for (uint t = 0u; t < kMatTokens; ++t) {
          coopMatLoad(inputs[t], input_tile, (first_token_matrix + t) * kN * kRowPieces + k / 4u,
                      kRowPieces, gl_CooperativeMatrixLayoutColumnMajor);
        }
        [[unroll]] for (uint r = 0u; r < kMatRows; ++r) {
          coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA> weights;
          coopMatLoad(weights, weight_tile, (first_row_matrix + r) * kM * kRowPieces + k / 4u,
                      kRowPieces, gl_CooperativeMatrixLayoutRowMajor);
          [[unroll]] for (uint t = 0u; t < kMatTokens; ++t) {
            sums[r * kMatTokens + t] = coopMatMulAdd(weights, inputs[t], sums[r * kMatTokens + t]);
          }
        }
      }
    }
    barrier();
  }
  const uint own = gl_SubgroupID * kM * kN;
  [[unroll]] for (uint i = 0u; i < kMatRows * kMatTokens; ++i) {
    coopMatStore(sums[i], sum_tiles, own, kM, gl_CooperativeMatrixLayoutColumnMajor);
    barrier();
    // Unrolled, too: else some compilers keep the sums in memory.
    [[unroll]] for (uint turn = 0u; turn < kTurns; ++turn) {
      const uint j = turn * (kLanes / kSubgroups) + gl_SubgroupInvocationID;
      const uint row = tile_row + (first_row_matrix + i / kMatTokens) * kM + j % kM;
      const uint token = first_token + (first_token_matrix + i % kMatTokens) * kN + j / kM;
      if (row < push.rows && token < n_tokens && j < kM * kN) {
        const float scale =
            uintBitsToFloat(staged[stagedRow(token) + push.units * (kUnit / 8u)].x);
        const uint at = token * push.out_stride + push.out_first + row;
        const float sum = sum_tiles[own + j] * scale;
        result[at] = push.accumulate != 0u ? result[at] + sum : sum;
      }
    }
    barrier();
  }
}
