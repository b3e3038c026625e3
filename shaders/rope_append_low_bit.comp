// As rope_append.comp, for caches with int8 or int4 sides: window queries and ring keys are rotated once
// more by a Walsh-Hadamard matrix when keys are low-bit, and ring vectors are quantised in groups of 32.
// Sinks stay f16 and are scored by queries without that rotation.
// Reads every value of qkv about twice, writes queries and one cache vector per KV head and side; a few
// hundred operations a value (the search for the best scale).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/layout.h"
#include "lib/half.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 64u;
layout(constant_id = 1) const uint kHeadDim = 64u;
layout(constant_id = 2) const bool kNorms = false;
#include "lib/kv.glsl"

layout(push_constant) uniform Push { RopeAppendPush push; };
layout(std430, set = 0, binding = 0) readonly buffer Qkv { float qkv[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 1) readonly buffer Rotations { float rotations[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Queries { float queries[]; };
layout(std430, set = 0, binding = 3) buffer KeyCache { uint k_cache[]; };
layout(std430, set = 0, binding = 4) buffer ValueCache { uint v_cache[]; };
#include "lib/rotate.glsl"

shared float values[kHeadDim];
shared uint scales[kGroups];  // f16 bits of each group
#include "lib/quantise.glsl"

// Grid (vectors, tokens). Vectors of a token: n_heads window queries, n_heads sink queries, keys, values.
void main() {
  const uint t = gl_WorkGroupID.y;
  if (t >= step_.header.n_tokens) {
    return;
  }
  const uint lane = gl_LocalInvocationIndex;
  const uint vector = gl_WorkGroupID.x;
  const uint qkv_at = t * push.qkv_stride;
  const bool is_query = vector < 2u * push.n_heads;
  const bool is_sink_query = is_query && vector >= push.n_heads;
  const bool is_value = vector >= 2u * push.n_heads + push.n_kv_heads;
  const uint source = is_query ? vector % push.n_heads : vector - push.n_heads;
  const uint from = qkv_at + source * kHeadDim;
  const View view = viewOf(t, push.view);
  const uint slot = view.slot;
  const bool to_ring = slot >= push.sinks;

  const uint table_at = t * push.rotation_stride + (is_sink_query ? push.sink_rotation
                                                    : is_query    ? push.query_rotation
                                                                  : push.key_rotation);
  for (uint i = lane; i < kHeadDim; i += kLanes) {
    values[i] = is_value ? qkv[from + i] : turned(from, table_at, i, is_query ? 0u : kHeadDim);
  }
  barrier();
  if (kLowBitKeys && !is_value && !is_sink_query && (is_query || to_ring)) {
    hadamard(lane, 0u, kHeadDim);
  }
  if (is_query) {
    const uint at = t * push.query_stride + (2u * source + (is_sink_query ? 1u : 0u)) * kHeadDim;
    for (uint i = lane; i < kHeadDim; i += kLanes) {
      queries[at + i] = values[i];
    }
    return;
  }
  const uint kv_head = is_value ? vector - 2u * push.n_heads - push.n_kv_heads
                                : vector - 2u * push.n_heads;
  if (!to_ring) {
    for (uint w = lane; w < kHalfWords; w += kLanes) {
      const uint sink = view.first_sink * push.n_kv_heads + kv_head * push.sinks + slot;
      const uint at = sink * kHalfWords + w;
      if (is_value) {
        v_cache[at] = halfWord(w);
      } else {
        k_cache[at] = halfWord(w);
      }
    }
    return;
  }

  const uint vector_index =
      view.first * push.n_kv_heads + kv_head * view.ring + slot - push.sinks;
  const uint ring_word = push.n_kv_heads * push.all_sinks * kHalfWords;
  if (is_value) {
    if (kLowBitValues) {
      const uint scales_word = ring_word + push.n_kv_heads * view.all_ring * kValueWords;
      chooseScales(lane, kValues);
      for (uint g = lane; g < kGroups; g += kLanes) {
        const uint i = vector_index * kGroups + g;
        // Neighbouring vectors may share a word: each changes its own half.
        atomicAnd(v_cache[scales_word + i / 2u], 0xffff0000u >> (16u * (i & 1u)));
        atomicOr(v_cache[scales_word + i / 2u], scales[g] << (16u * (i & 1u)));
      }
    }
    for (uint w = lane; w < kValueWords; w += kLanes) {
      v_cache[ring_word + vector_index * kValueWords + w] = codeWord(kValues, w);
    }
    return;
  }
  if (kLowBitKeys) {
    const uint scales_word = ring_word + push.n_kv_heads * view.all_ring * kKeyWords;
    chooseScales(lane, kKeys);
    for (uint g = lane; g < kGroups; g += kLanes) {
      const uint i = vector_index * kGroups + g;
      atomicAnd(k_cache[scales_word + i / 2u], 0xffff0000u >> (16u * (i & 1u)));
      atomicOr(k_cache[scales_word + i / 2u], scales[g] << (16u * (i & 1u)));
    }
  }
  for (uint w = lane; w < kKeyWords; w += kLanes) {
    k_cache[ring_word + vector_index * kKeyWords + w] = codeWord(kKeys, w);
  }
}
