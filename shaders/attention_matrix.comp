// attention.comp for the tokens of a prompt on matrix units (VK_KHR_cooperative_matrix): queries, keys, values and
// weights are f16, sums are float32. Reads keys and values once for kQueries queries of a KV head; 4 * head_dim operations
// a slot and query.
//
// A subgroup has kM queries: numbered token by token, as in attention.comp. A turn takes kSlots slots: keys and values to
// shared memory, products with the keys, weights by running softmax, products with the values.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#include "shared/layout.h"
#include "lib/half.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 128u;   // whole subgroups, kSubgroups of them
layout(constant_id = 1) const uint kHeadDim = 64u;  // in whole matrices
layout(constant_id = 2) const uint kM = 16u;        // what the device's matrices measure
layout(constant_id = 3) const uint kN = 16u;
layout(constant_id = 4) const uint kK = 16u;
layout(constant_id = 5) const uint kSubgroups = 4u;

layout(push_constant) uniform Push { AttentionPush push; };
#define ORIEL_KV_HEADS push.n_kv_heads
const uint kLaneOctets = 1u;  // read at a time
layout(std430, set = 0, binding = 0) readonly buffer Queries { vec4 queries[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Out { vec4 result[]; };
#include "lib/kv.glsl"
#include "lib/kv_read.glsl"

const uint kQueries = kSubgroups * kM;  // at most kRows
const uint kSlots = 32u;
const uint kRows = 2u * kSlots;
const uint kRowPieces = kHeadDim / 4u + 2u;  // so that rows begin in different banks
const uint kWeightPieces = kSlots / 4u + 2u;
const uint kScorePieces = kSlots / 4u + 1u;
const uint kPerQuery = kLanes / kQueries;  // lanes
const float kLowest = -1.0e30;

shared f16vec4 tile[kRows * kRowPieces];  // queries; then keys [slot][dim] and values behind them
shared f16vec4 weights[kQueries * kWeightPieces];
shared vec4 scores[kQueries * kScorePieces];  // then results [query][kN]
shared float corrections[kQueries];
shared float lane_sums[kLanes];

// Counted from the first slot of the ring that the workgroup walks.
uint ringFrom(View view, View first) {
  return view.begin - first.begin + (view.begin < first.begin ? first.ring : 0u);
}

// Of four slots: `from` is the first of them, counted from the first that a query sees, and `left` slots are walked.
bvec4 areSeen(uint from, uint wrap, uint n_seen, uint left) {
  const uvec4 at = from + uvec4(0u, 1u, 2u, 3u);
  const bvec4 past = greaterThanEqual(uvec4(0u, 1u, 2u, 3u), uvec4(left));
  return lessThan(mix(min(at, at + wrap), uvec4(~0u), past), uvec4(n_seen));
}

// Grid (KV heads, tiles of queries).
void main() {
  const uint kv_head = gl_WorkGroupID.x;
  const uint heads = push.n_heads / push.n_kv_heads;
  const uint first = gl_WorkGroupID.y * kQueries;
  const uint n_queries = step_.header.n_tokens * heads;
  if (first >= n_queries) {
    return;
  }
  const uint last = min(first + kQueries, n_queries) - 1u;
  const uint lane = gl_LocalInvocationIndex;
  const uint row = lane / kPerQuery;
  const uint own_part = lane % kPerQuery;
  const uint own_query = min(first + row, last);
  const uint own_token = own_query / heads;
  const uint own_head = kv_head * heads + own_query % heads;
  const View own = viewOf(own_token, push.view);
  const uint subgroup_row = gl_SubgroupID * kM;
  float maximum = kLowest;
  float sum = 0.0;
  coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator> totals[kHeadDim / kN];
  [[unroll]] for (uint d = 0u; d < kHeadDim / kN; ++d) {
    totals[d] = coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>(0.0);
  }

  // The memories of the tile's tokens, one after the other; sinks, then the ring.
  uint token = first / heads;
  while (token <= last / heads) {
    const uint first_token = token;
    const View begin = viewOf(token, push.view);
    uint n_sinks = 0u;
    uint n_ring = 0u;
    for (; token <= last / heads && tokenBase(token) == tokenBase(first_token); ++token) {
      const View view = viewOf(token, push.view);
      n_sinks = max(n_sinks, view.n_sinks);
      n_ring = max(n_ring, ringFrom(view, begin) + view.count);
    }
    n_ring = min(n_ring, begin.ring);
    const bool here = own_token >= first_token && own_token < token;
    const uint own_from = ringFrom(own, begin);
    const Side key_side = sideOf(begin, kv_head, kKeyWords);
    const Side value_side = sideOf(begin, kv_head, kValueWords);
    for (uint part = 0u; part < 2u; ++part) {
      const bool sink = part == 0u;
      const uint visible = sink ? n_sinks : n_ring;
      if (visible == 0u) {
        continue;
      }
      barrier();
      const uint in_at = own_query / heads * push.query_stride + (2u * own_head + 1u - part) * kHeadDim;
      for (uint i = own_part; i < kHeadDim / 4u; i += kPerQuery) {
        tile[row * kRowPieces + i] = f16vec4(push.scale * queries[in_at / 4u + i]);
      }
      barrier();
      coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA> query[kHeadDim / kK];
      [[unroll]] for (uint k = 0u; k < kHeadDim / kK; ++k) {
        coopMatLoad(query[k], tile, subgroup_row * kRowPieces + k * kK / 4u, kRowPieces,
                    gl_CooperativeMatrixLayoutRowMajor);
      }
      for (uint turn = 0u; turn < visible; turn += kSlots) {
        barrier();
        for (uint i = lane; i < kSlots * kOctets; i += kLanes) {
          const uint octet = i % kOctets;
          const uint at = turn + i / kOctets;
          uint slot = sink ? at : begin.begin + at;
          slot -= !sink && slot >= begin.ring ? begin.ring : 0u;
          const uint to = i / kOctets * kRowPieces + 2u * octet;
          vec4 a = vec4(0.0), b = vec4(0.0);
          float scale = 1.0;
          if (at < visible) {
            keyOctet(sink, wordOf(key_side, sink, slot, kKeyWords), octet, 0u, a, b);
            if (kLowBitKeys && !sink) {
              scale = unitOf(kKeys) * scaleOf(ORIEL_SCALES(key_side, keyWord, slot, octet), 0u);
            }
          }
          tile[to] = f16vec4(scale * a);
          tile[to + 1u] = f16vec4(scale * b);
          scale = 1.0;
          if (at < visible) {
            valueOctet(sink, wordOf(value_side, sink, slot, kValueWords), octet, 0u, a, b);
            if (kLowBitValues && !sink) {
              scale = unitOf(kValues) * scaleOf(ORIEL_SCALES(value_side, valueWord, slot, octet), 0u);
            }
          }
          tile[kSlots * kRowPieces + to] = f16vec4(scale * a);
          tile[kSlots * kRowPieces + to + 1u] = f16vec4(scale * b);
        }
        barrier();
        [[unroll]] for (uint n = 0u; n < kSlots / kN; ++n) {
          coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator> products =
              coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>(0.0);
          [[unroll]] for (uint k = 0u; k < kHeadDim / kK; ++k) {
            coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB> keys;
            coopMatLoad(keys, tile, n * kN * kRowPieces + k * kK / 4u, kRowPieces,
                        gl_CooperativeMatrixLayoutColumnMajor);
            products = coopMatMulAdd(query[k], keys, products);
          }
          coopMatStore(products, scores, subgroup_row * kScorePieces + n * kN / 4u, kScorePieces,
                       gl_CooperativeMatrixLayoutRowMajor);
        }
        barrier();
        const uint from = sink ? turn : turn - own_from;
        const uint wrap = sink ? 0u : begin.ring;
        const uint n_seen = !here ? 0u : sink ? own.n_sinks : own.count;
        vec4 most = vec4(maximum);
        for (uint i = 0u; i < kSlots / 4u; ++i) {
          const bvec4 seen = areSeen(from + 4u * i, wrap, n_seen, max(visible, turn + 4u * i) - turn - 4u * i);
          most = mix(most, max(most, scores[row * kScorePieces + i]), seen);
        }
        most.x = max(max(most.x, most.y), max(most.z, most.w));
        const float correction = exp(maximum - most.x);
        maximum = most.x;
        sum *= correction;
        for (uint i = own_part; i < kSlots / 4u; i += kPerQuery) {
          const bvec4 seen = areSeen(from + 4u * i, wrap, n_seen, max(visible, turn + 4u * i) - turn - 4u * i);
          const f16vec4 weight =
              f16vec4(mix(vec4(0.0), exp(scores[row * kScorePieces + i] - maximum), seen));
          weights[row * kWeightPieces + i] = weight;
          sum += dot(vec4(weight), vec4(1.0));
        }
        if (own_part == 0u) {
          corrections[row] = correction;
        }
        barrier();
        coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA> factors[kSlots / kK];
        [[unroll]] for (uint k = 0u; k < kSlots / kK; ++k) {
          coopMatLoad(factors[k], weights, subgroup_row * kWeightPieces + k * kK / 4u, kWeightPieces,
                      gl_CooperativeMatrixLayoutRowMajor);
        }
        coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator> scale;  // the same for all columns
        coopMatLoad(scale, corrections, subgroup_row, 0u, gl_CooperativeMatrixLayoutColumnMajor);
        [[unroll]] for (uint d = 0u; d < kHeadDim / kN; ++d) {
          totals[d] *= scale;
          [[unroll]] for (uint k = 0u; k < kSlots / kK; ++k) {
            coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB> values;
            coopMatLoad(values, tile, (kSlots + k * kK) * kRowPieces + d * kN / 4u, kRowPieces,
                        gl_CooperativeMatrixLayoutRowMajor);
            totals[d] = coopMatMulAdd(factors[k], values, totals[d]);
          }
        }
      }
    }
  }

  lane_sums[lane] = sum;
  barrier();
  float whole = 0.0;
  for (uint i = 0u; i < kPerQuery; ++i) {
    whole += lane_sums[row * kPerQuery + i];
  }
  const uint to = own_token * push.out_stride + own_head * kHeadDim;
  [[unroll]] for (uint d = 0u; d < kHeadDim / kN; ++d) {
    coopMatStore(totals[d], scores, subgroup_row * kN / 4u, kN / 4u, gl_CooperativeMatrixLayoutRowMajor);
    barrier();
    // Unrolled, too: else some compilers keep the sums in memory.
    [[unroll]] for (uint i = 0u; i < kN / 4u; i += kPerQuery) {
      if (i + own_part < kN / 4u && first + row <= last) {
        result[(to + d * kN) / 4u + i + own_part] = whole > 0.0 ? scores[row * kN / 4u + i + own_part] / whole : vec4(0.0);
      }
    }
    barrier();
  }
}
