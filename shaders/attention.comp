// softmax(scale * q . K) V over the slots a token sees, for one head and one split of the slots, with
// a running maximum (online softmax) over tiles of kLanes slots.
// Reads each key and value of its slots once, packed; 4 * head_dim operations a slot, and unpacking.
// K_INT8, K_INT4, V_INT8, V_INT4 choose how ring keys and values are stored (neither: f16).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"
#include "lib/half.glsl"

// Every Vulkan device allows 128 invocations; and one lane per cache word of the largest head.
const uint kLanes = 128u;
const uint kMaxHeadDim = 2u * kLanes;
layout(local_size_x = 128) in;
layout(constant_id = 0) const uint kHeadDim = 64u;
#include "lib/kv.glsl"
const uint kWords = kHalfWords;
// In the value pass lane l adds up the values 2w and 2w + 1, w = l % kWords, of every kTeams-th slot.
const uint kTeams = kLanes / kWords;
// Queries are padded to whole words of the narrowest format; padding is zero.
const uint kQueryPairs = 4u * kInt4Words;
const uint kMaxQueryPairs = kMaxHeadDim / 2u;

layout(push_constant) uniform Push { AttentionPush push; };
layout(std430, set = 0, binding = 0) readonly buffer Queries { float queries[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Out { float result[]; };
layout(std430, set = 0, binding = 3) readonly buffer KeyCache { uint k_cache[]; };
layout(std430, set = 0, binding = 4) readonly buffer ValueCache { uint v_cache[]; };

// Below every score, and far from overflow when scores are subtracted.
const float kLowest = -3.0e38;
const uint kParts = 8u;
const uint kSinkBit = 0x80000000u;

shared vec2 query[2u * kMaxQueryPairs];  // query 0, then query 1; two values each
shared float lane_values[kLanes];
shared float part_values[kParts];
shared float weights[kLanes];    // exp(score - maximum) of the tile's slots
shared uint slots[kLanes];       // ring slots, or sink slots with kSinkBit
shared vec2 team_sums[kLanes];

// Both reductions leave the result in every lane and expect a barrier between two uses of
// lane_values, which every caller has.
float maxOfLanes(float value) {
  const uint lane = gl_LocalInvocationIndex;
  lane_values[lane] = value;
  barrier();
  if (lane < kParts) {
    float part = kLowest;
    for (uint i = lane; i < kLanes; i += kParts) {
      part = max(part, lane_values[i]);
    }
    part_values[lane] = part;
  }
  barrier();
  float total = part_values[0];
  for (uint i = 1u; i < kParts; ++i) {
    total = max(total, part_values[i]);
  }
  return total;
}

float sumOfLanes(float value) {
  const uint lane = gl_LocalInvocationIndex;
  lane_values[lane] = value;
  barrier();
  if (lane < kParts) {
    float part = 0.0;
    for (uint i = lane; i < kLanes; i += kParts) {
      part += lane_values[i];
    }
    part_values[lane] = part;
  }
  barrier();
  float total = 0.0;
  for (uint i = 0u; i < kParts; ++i) {
    total += part_values[i];
  }
  return total;
}

// Where this workgroup's KV head lies on one side: words of its sinks, of its ring, and its first scale.
struct Side {
  uint sink_word;
  uint ring_word;
  uint scales_word;
  uint first_scale;
};
Side sideOf(uint kv_head, uint words) {
  const uint ring_word = push.n_kv_heads * push.sinks * kHalfWords;
  return Side(kv_head * push.sinks * kHalfWords, ring_word + kv_head * push.ring * words,
              ring_word + push.n_kv_heads * push.ring * words, kv_head * push.ring * kGroups);
}

float halfKeyDot(uint which_query, uint key_word) {
  vec2 sum = vec2(0.0);
  for (uint w = 0u; w < kHalfWords; ++w) {
    sum += query[which_query * kQueryPairs + w] * unpackHalf2x16(k_cache[key_word + w]);
  }
  return sum.x + sum.y;
}

float ringKeyDot(Side side, uint slot) {
  const uint key_word = side.ring_word + slot * kKeyWords;
#if defined(K_INT8) || defined(K_INT4)
  float sum = 0.0;
  for (uint g = 0u; g < kGroups; ++g) {
    const uint scale = side.first_scale + slot * kGroups + g;
    const uint scale_bits = k_cache[side.scales_word + scale / 2u] >> (16u * (scale & 1u));
    const uint words = kKvGroup * kKeyBits / 32u;
    const uint end = min((g + 1u) * words, kKeyWords);
    vec4 part = vec4(0.0);
    for (uint w = g * words; w < end; ++w) {
      const uint packed = k_cache[key_word + w];
#if defined(K_INT8)
      part += int8Values(packed) * vec4(query[2u * w], query[2u * w + 1u]);
#else
      part += int4Values(packed) * vec4(query[4u * w], query[4u * w + 1u]);
      part += int4Values(packed >> 16) * vec4(query[4u * w + 2u], query[4u * w + 3u]);
#endif
    }
    sum += exactHalf(scale_bits & 0xffffu) * (part.x + part.y + part.z + part.w);
  }
  return sum;
#else
  return halfKeyDot(0u, key_word);
#endif
}

// Values 2 * pair and 2 * pair + 1 of a slot.
vec2 valuePair(Side side, uint slot, uint pair) {
  if ((slot & kSinkBit) != 0u) {
    return unpackHalf2x16(v_cache[side.sink_word + (slot & ~kSinkBit) * kHalfWords + pair]);
  }
  const uint value_word = side.ring_word + slot * kValueWords;
#if defined(V_INT8) || defined(V_INT4)
  const uint scale = side.first_scale + slot * kGroups + 2u * pair / kKvGroup;
  const uint scale_bits = v_cache[side.scales_word + scale / 2u] >> (16u * (scale & 1u));
#if defined(V_INT8)
  const int packed = int(v_cache[value_word + pair / 2u] >> (16u * (pair & 1u)));
  const vec2 codes = vec2(ivec2(packed << 24, packed << 16) >> 24);
#else
  const uint packed = v_cache[value_word + pair / 4u] >> (8u * (pair & 3u));
  const vec2 codes = vec2(int4Value(packed & 15u), int4Value((packed >> 4) & 15u));
#endif
  return exactHalf(scale_bits & 0xffffu) * codes;
#else
  return unpackHalf2x16(v_cache[value_word + pair]);
#endif
}

// Grid (heads, tokens, splits).
void main() {
  const uint head = gl_WorkGroupID.x;
  const uint t = gl_WorkGroupID.y;
  const uint split = gl_WorkGroupID.z;
  if (t >= step_.header.n_tokens) {
    return;
  }
  const uint lane = gl_LocalInvocationIndex;
  const uint kv_head = head / (push.n_heads / push.n_kv_heads);
  const Side keys = sideOf(kv_head, kKeyWords);
  const Side stored_values = sideOf(kv_head, kValueWords);
  const bool local = push.local != 0u;
  const uint n_sinks = local ? 0u : step_.tokens[t].n_sinks;
  const uint ring_begin = local ? step_.tokens[t].local_begin : step_.tokens[t].ring_begin;
  const uint visible =
      n_sinks + (local ? step_.tokens[t].local_n_ring : step_.tokens[t].n_ring);
  const uint begin = split * push.split_slots;
  const uint end = push.splits == 1u ? visible : min(begin + push.split_slots, visible);

  for (uint i = lane; i < 2u * kQueryPairs; i += kLanes) {
    const uint pair = i % kQueryPairs;
    const uint at =
        t * push.query_stride + (head * 2u + i / kQueryPairs) * kHeadDim + 2u * pair;
    query[i] = pair < kHalfWords ? vec2(queries[at], queries[at + 1u]) : vec2(0.0);
  }
  barrier();

  const uint team = lane / kWords;
  const uint word = lane % kWords;
  float maximum = kLowest;
  float lane_sum = 0.0;  // of this lane's slots only, until the end
  vec2 values = vec2(0.0);
  for (uint tile = begin; tile < end; tile += kLanes) {
    const uint i = tile + lane;
    const bool is_sink = i < n_sinks;
    float slot_score = kLowest;
    uint slot = 0u;
    if (i < end) {
      slot = ring_begin + i - n_sinks;
      slot -= slot >= push.ring && !is_sink ? push.ring : 0u;
      slot = is_sink ? i | kSinkBit : slot;
      slot_score = push.scale * (is_sink ? halfKeyDot(1u, keys.sink_word + i * kHalfWords)
                                         : ringKeyDot(keys, slot));
    }
    const float new_maximum = max(maximum, maxOfLanes(slot_score));
    const float correction = exp(maximum - new_maximum);
    const float weight = i < end ? exp(slot_score - new_maximum) : 0.0;
    maximum = new_maximum;
    lane_sum = lane_sum * correction + weight;
    weights[lane] = weight;
    slots[lane] = slot;
    barrier();
    values *= correction;
    const uint count = min(kLanes, end - tile);
    for (uint j = team; j < count; j += kTeams) {
      values += weights[j] * valuePair(stored_values, slots[j], word);
    }
  }

  // Lanes past the last whole team have walked slots of their own accord; they are left out.
  team_sums[lane] = values;
  const float sum = sumOfLanes(lane_sum);
  if (lane >= kWords) {
    return;
  }
  vec2 total = vec2(0.0);
  for (uint i = 0u; i < kTeams; ++i) {
    total += team_sums[i * kWords + lane];
  }
  if (push.splits == 1u) {
    total = sum > 0.0 ? total / sum : vec2(0.0);
    const uint at = t * push.out_stride + head * kHeadDim + 2u * lane;
    result[at] = total.x;
    result[at + 1u] = total.y;
    return;
  }
  const uint at =
      ((t * push.n_heads + head) * push.splits + split) * (kHeadDim + kPartialExtra);
  result[at + 2u * lane] = total.x;
  result[at + 2u * lane + 1u] = total.y;
  if (lane == 0u) {
    result[at + kHeadDim] = maximum;
    result[at + kHeadDim + 1u] = sum;
  }
}
