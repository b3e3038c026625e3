// softmax(scale * q . K) V over the slots a token sees, for kHeads heads that share a KV head and one
// split of the slots, with a running maximum (online softmax) over tiles of kLanes slots.
// Reads each key and value of its slots once per kHeads heads: 2 * head_dim bytes each; 4 * head_dim
// operations a slot and head.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/layout.h"

// Every Vulkan device allows 128 invocations; and one lane per cache word of the largest head.
const uint kLanes = 128u;
layout(local_size_x = 128) in;
layout(constant_id = 0) const uint kHeadDim = 64u;
layout(constant_id = 1) const uint kHeads = 1u;  // divides n_heads / n_kv_heads
const uint kWords = kHeadDim / 2u;
// In the value pass lane l adds up word l % kWords of every kGroups-th slot.
const uint kGroups = kLanes / kWords;

layout(push_constant) uniform Push { AttentionPush push; };
layout(std430, set = 0, binding = 0) readonly buffer Queries { float queries[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Out { float result[]; };
layout(std430, set = 0, binding = 3) readonly buffer KeyCache { uint k_cache[]; };
layout(std430, set = 0, binding = 4) readonly buffer ValueCache { uint v_cache[]; };

// Below every score, and far from overflow when scores are subtracted.
const float kLowest = -3.0e38;
const uint kParts = 8u;

shared vec2 query[kHeads * 2u * kWords];  // [head][query 0 and 1][word], two values each
shared float lane_values[kHeads * kLanes];
shared float part_values[kHeads * kParts];
shared float weights[kHeads * kLanes];  // exp(score - maximum) of the tile's slots
shared vec2 group_sums[kLanes];

// Where slot i of those the token sees begins in the cache, for one KV head.
struct Slots {
  uint n_sinks;
  uint ring_begin;
  uint sink_words;
  uint ring_words;
};
uint slotWord(Slots slots, uint i) {
  if (i < slots.n_sinks) {
    return slots.sink_words + i * kWords;
  }
  uint slot = slots.ring_begin + i - slots.n_sinks;
  slot -= slot >= push.ring ? push.ring : 0u;
  return slots.ring_words + slot * kWords;
}

// Over all lanes, for each head: the maximum or the sum, left in every lane. Between two uses there is
// a barrier: the one after the weights are written.
void reduceLanes(bool maxima, inout float values[kHeads]) {
  const uint lane = gl_LocalInvocationIndex;
  [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
    lane_values[h * kLanes + lane] = values[h];
  }
  barrier();
  if (lane < kHeads * kParts) {
    const uint first = lane / kParts * kLanes + lane % kParts;
    float part = lane_values[first];
    for (uint i = kParts; i < kLanes; i += kParts) {
      const float next = lane_values[first + i];
      part = maxima ? max(part, next) : part + next;
    }
    part_values[lane] = part;
  }
  barrier();
  [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
    float total = part_values[h * kParts];
    [[unroll]] for (uint i = 1u; i < kParts; ++i) {
      const float next = part_values[h * kParts + i];
      total = maxima ? max(total, next) : total + next;
    }
    values[h] = total;
  }
}

// Unrolled, so that the query's addresses are constants: CPUs then load it once for all lanes.
void addScores(uint which_query, uint key_word, out float scores[kHeads]) {
  vec2 sums[kHeads];
  [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
    sums[h] = vec2(0.0);
  }
  [[unroll]] for (uint w = 0u; w < kWords; ++w) {
    const vec2 key = unpackHalf2x16(k_cache[key_word + w]);
    [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
      sums[h] += key * query[(h * 2u + which_query) * kWords + w];
    }
  }
  [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
    scores[h] = push.scale * (sums[h].x + sums[h].y);
  }
}

void writeHead(uint t, uint head, uint split, uint word, vec2 total, float maximum, float sum) {
  if (push.splits == 1u) {
    total = sum > 0.0 ? total / sum : vec2(0.0);
    const uint at = t * push.out_stride + head * kHeadDim + 2u * word;
    result[at] = total.x;
    result[at + 1u] = total.y;
    return;
  }
  const uint at =
      ((t * push.n_heads + head) * push.splits + split) * (kHeadDim + kPartialExtra);
  result[at + 2u * word] = total.x;
  result[at + 2u * word + 1u] = total.y;
  if (word == 0u) {
    result[at + kHeadDim] = maximum;
    result[at + kHeadDim + 1u] = sum;
  }
}

// Grid (heads / kHeads, tokens, splits).
void main() {
  const uint first_head = gl_WorkGroupID.x * kHeads;
  const uint t = gl_WorkGroupID.y;
  const uint split = gl_WorkGroupID.z;
  if (t >= step_.header.n_tokens) {
    return;
  }
  const uint lane = gl_LocalInvocationIndex;
  const uint kv_head = first_head / (push.n_heads / push.n_kv_heads);
  const TokenStep seen = step_.tokens[t];
  const Slots slots =
      Slots(seen.n_sinks, seen.ring_begin, kv_head * push.sinks * kWords,
            (push.n_kv_heads * push.sinks + kv_head * push.ring) * kWords);
  const uint visible = seen.n_sinks + seen.n_ring;
  const uint begin = split * push.split_slots;
  const uint end = push.splits == 1u ? visible : min(begin + push.split_slots, visible);

  for (uint w = lane; w < kHeads * 2u * kWords; w += kLanes) {
    const uint at = t * push.query_stride + first_head * 2u * kHeadDim + 2u * w;
    query[w] = vec2(queries[at], queries[at + 1u]);
  }
  barrier();

  const uint group = lane / kWords;
  const uint word = lane % kWords;
  float maximum[kHeads];
  float lane_sum[kHeads];  // of this lane's slots only, until the end
  vec2 values[kHeads];
  [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
    maximum[h] = kLowest;
    lane_sum[h] = 0.0;
    values[h] = vec2(0.0);
  }
  for (uint tile = begin; tile < end; tile += kLanes) {
    const uint i = tile + lane;
    float scores[kHeads];
    [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
      scores[h] = kLowest;
    }
    if (i < end) {
      const uint key_word = slotWord(slots, i);
      addScores(0u, key_word, scores);
      if (tile < seen.n_sinks) {  // for the whole tile: few tiles have sinks
        float sink_scores[kHeads];
        addScores(1u, key_word, sink_scores);
        [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
          scores[h] = i < seen.n_sinks ? sink_scores[h] : scores[h];
        }
      }
    }
    float tile_maximum[kHeads] = scores;
    reduceLanes(true, tile_maximum);
    [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
      const float new_maximum = max(maximum[h], tile_maximum[h]);
      const float correction = exp(maximum[h] - new_maximum);
      const float weight = i < end ? exp(scores[h] - new_maximum) : 0.0;
      maximum[h] = new_maximum;
      lane_sum[h] = lane_sum[h] * correction + weight;
      values[h] *= correction;
      weights[h * kLanes + lane] = weight;
    }
    barrier();
    const uint count = min(kLanes, end - tile);
    for (uint j = group; j < count; j += kGroups) {
      const vec2 value = unpackHalf2x16(v_cache[slotWord(slots, tile + j) + word]);
      [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
        values[h] += weights[h * kLanes + j] * value;
      }
    }
  }

  reduceLanes(false, lane_sum);
  [[unroll]] for (uint h = 0u; h < kHeads; ++h) {
    barrier();  // the head before has been read
    group_sums[lane] = values[h];
    barrier();
    // Lanes past the last whole group have walked slots of their own accord; they are left out.
    if (lane < kWords) {
      vec2 total = vec2(0.0);
      for (uint g = 0u; g < kGroups; ++g) {
        total += group_sums[g * kWords + lane];
      }
      writeHead(t, first_head + h, split, lane, total, maximum[h], lane_sum[h]);
    }
  }
}
