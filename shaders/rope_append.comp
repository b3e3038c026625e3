// Rotates a token's queries (twice: for window keys and for sink keys) and its keys, and stores keys
// and values in the cache as f16, rounded alike on every device.
// Reads and writes every value of qkv about once (queries are written twice); 6 operations a value.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"
#include "lib/half.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 2) const bool kNorms = false;

layout(push_constant) uniform Push { RopeAppendPush push; };
layout(std430, set = 0, binding = 0) readonly buffer Qkv { float qkv[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 1) readonly buffer Rotations { float rotations[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Queries { float queries[]; };
layout(std430, set = 0, binding = 3) writeonly buffer KeyCache { uint k_cache[]; };
layout(std430, set = 0, binding = 4) writeonly buffer ValueCache { uint v_cache[]; };

#include "lib/rotate.glsl"

vec2 turnedPair(uint head_at, uint table_at, uint word, uint norm_at) {
  return vec2(turned(head_at, table_at, 2u * word, norm_at),
              turned(head_at, table_at, 2u * word + 1u, norm_at));
}

uint cacheWord(View view, uint kv_head, uint words) {
  if (view.slot < push.sinks) {
    return (view.first_sink * push.n_kv_heads + kv_head * push.sinks + view.slot) * words;
  }
  const uint first = (push.all_sinks + view.first) * push.n_kv_heads;
  return (first + kv_head * view.ring + view.slot - push.sinks) * words;
}

// One lane per pair of neighbouring values of an output vector (two queries per head, a key and a
// value per KV head); grid (pairs, tokens).
void main() {
  const uint t = gl_WorkGroupID.y;
  const uint words = push.head_dim / 2u;
  const uint vector = gl_GlobalInvocationID.x / words;
  const uint word = gl_GlobalInvocationID.x % words;
  if (t >= step_.header.n_tokens || vector >= 2u * (push.n_heads + push.n_kv_heads)) {
    return;
  }
  const uint qkv_at = t * push.qkv_stride;
  const uint tables_at = t * push.rotation_stride;
  if (vector < 2u * push.n_heads) {
    const uint table_at =
        tables_at + (vector % 2u == 0u ? push.query_rotation : push.sink_rotation);
    const vec2 pair = turnedPair(qkv_at + vector / 2u * push.head_dim, table_at, word, 0u);
    const uint at = t * push.query_stride + vector * push.head_dim + 2u * word;
    queries[at] = pair.x;
    queries[at + 1u] = pair.y;
    return;
  }
  const uint kv_vector = vector - 2u * push.n_heads;  // keys, then values
  const uint from = qkv_at + (push.n_heads + kv_vector) * push.head_dim;
  const View view = viewOf(t, push.view);
  if (kv_vector < push.n_kv_heads) {
    k_cache[cacheWord(view, kv_vector, words) + word] =
        packHalves(turnedPair(from, tables_at + push.key_rotation, word, push.head_dim));
  } else {
    v_cache[cacheWord(view, kv_vector - push.n_kv_heads, words) + word] =
        packHalves(vec2(qkv[from + 2u * word], qkv[from + 2u * word + 1u]));
  }
}
