// Completes a token's queries and remembers its latent and key: LatentAppendPush says what becomes of them.
// Reads a head's rotated values twice and writes them for the ring and for sinks; in formats of few bits reads and writes
// the rest of a query, too, and takes a few hundred operations a value of what is stored.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/layout.h"
#include "lib/half.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 64u;
layout(constant_id = 1) const uint kHeadDim = 64u;  // latent and key
layout(constant_id = 2) const uint kLatentDim = 32u;
const uint kRopeDim = kHeadDim - kLatentDim;
#include "lib/kv.glsl"

layout(push_constant) uniform Push { LatentAppendPush push; };
layout(std430, set = 0, binding = 0) readonly buffer Heads { float heads[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 1) readonly buffer Rotations { float rotations[]; };
layout(std430, set = 0, binding = 2) buffer Queries { float queries[]; };
layout(std430, set = 0, binding = 3) buffer Memory { uint memory[]; };
layout(std430, set = 0, binding = 4) readonly buffer Vectors { float vectors[]; };

shared float values[kHeadDim];
shared uint scales[kGroups];  // f16 bits of each group
#include "lib/quantise.glsl"

// As in lib/rotate.glsl: not contracted.
float turned(float x, float partner, bool first, uint pair_at) {
  precise float value = x * rotations[pair_at];
  precise float crossed = partner * rotations[pair_at + 1u];
  precise float sum = first ? value - crossed : value + crossed;
  return sum;
}
bool isFirst(uint dim) { return dim % (2u * push.pair_stride) < push.pair_stride; }
uint partnerOf(uint dim) {
  return isFirst(dim) ? dim + push.pair_stride : dim - push.pair_stride;
}
uint pairOf(uint dim) {
  return dim / (2u * push.pair_stride) * push.pair_stride + dim % push.pair_stride;
}

void appendQuery(uint t, uint head, uint lane) {
  const uint from = t * push.heads_stride + (head + 1u) * push.head_dim - kRopeDim;
  const uint to = t * push.query_stride + head * (kLatentDim + 2u * kRopeDim);
  for (uint which = 0u; which < 2u; ++which) {  // for the ring, for sinks
    const uint table =
        t * push.rotation_stride + (which == 0u ? push.query_rotation : push.sink_rotation);
    for (uint i = lane; i < kRopeDim; i += kLanes) {
      values[kLatentDim + i] = turned(heads[from + i], heads[from + partnerOf(i)], isFirst(i),
                                      table + 2u * pairOf(i));
    }
    if (kLowBitKeys) {
      for (uint i = lane; which == 0u && i < kLatentDim; i += kLanes) {
        values[i] = queries[to + i];
      }
      barrier();
      if (which == 0u) {
        hadamard(lane, 0u, kLatentDim);
        for (uint i = lane; i < kLatentDim; i += kLanes) {
          queries[to + i] = values[i];
        }
      }
      hadamard(lane, kLatentDim, kRopeDim);
    }
    for (uint i = lane; i < kRopeDim; i += kLanes) {
      queries[to + kLatentDim + which * kRopeDim + i] = values[kLatentDim + i];
    }
    barrier();
  }
}

void appendVector(uint t, uint lane) {
  const uint from = t * push.vector_stride + push.vector_first;
  const uint key = from + kLatentDim;
  const uint table = t * push.rotation_stride + push.key_rotation;
  for (uint i = lane; i < kLatentDim; i += kLanes) {
    values[i] = vectors[from + i];
  }
  for (uint i = lane; i < kRopeDim; i += kLanes) {
    values[kLatentDim + i] = turned(vectors[key + i], vectors[key + partnerOf(i)], isFirst(i),
                                    table + 2u * pairOf(i));
  }
  barrier();
  if (kLowBitKeys) {
    hadamard(lane, 0u, kLatentDim);
    hadamard(lane, kLatentDim, kRopeDim);
  }
  const View view = viewOf(t, push.view);
  const uint slot = view.slot;
  if (slot < push.sinks) {
    for (uint w = lane; w < kHalfWords; w += kLanes) {
      memory[(view.first_sink + slot) * kHalfWords + w] = halfWord(w);
    }
    return;
  }
  const uint ring_word = push.all_sinks * kHalfWords;
  const uint vector_index = view.first + slot - push.sinks;
  if (kLowBitKeys) {
    const uint scales_word = ring_word + view.all_ring * kKeyWords;
    chooseScales(lane, kKeys);
    barrier();
    for (uint g = lane; g < kGroups; g += kLanes) {
      const uint i = vector_index * kGroups + g;
      // Neighbouring vectors may share a word: each changes its own half.
      atomicAnd(memory[scales_word + i / 2u], 0xffff0000u >> (16u * (i & 1u)));
      atomicOr(memory[scales_word + i / 2u], scales[g] << (16u * (i & 1u)));
    }
  }
  for (uint w = lane; w < kKeyWords; w += kLanes) {
    memory[ring_word + vector_index * kKeyWords + w] = codeWord(kKeys, w);
  }
}

// Grid (heads and the token's vector, tokens).
void main() {
  const uint t = gl_WorkGroupID.y;
  if (t >= step_.header.n_tokens) {
    return;
  }
  const uint lane = gl_LocalInvocationIndex;
  if (gl_WorkGroupID.x < push.n_heads) {
    appendQuery(t, gl_WorkGroupID.x, lane);
  } else {
    appendVector(t, lane);
  }
}
