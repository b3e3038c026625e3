// A recurrent state through the tokens of a step, one after the other: StateScanPush says how.
// Rows of a state know nothing of each other: a team of kPieces lanes holds kRows rows of a head from the first token
// to the last, four neighbouring values a vector, every kPieces-th vector a lane. Keys and queries come to shared
// memory, kTokens tokens at a time. Reads and writes the state once a step, whatever its length, and a token's key
// and query once per workgroup of the head; 10 operations a value of the state and token with the delta rule, else 8.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/layout.h"
#include "lib/half.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 64u;
layout(constant_id = 1) const uint kKeyDim = 128u;
layout(constant_id = 2) const uint kPieces = 4u;  // 2, 4 or 8
layout(constant_id = 3) const uint kRows = 1u;
layout(constant_id = 4) const uint kTokens = 8u;
layout(constant_id = 5) const uint kFormat = 0u;  // as StateScanPush has it
layout(constant_id = 6) const uint kRule = 1u;  // 0 Mamba-2, 1 the delta rule, 2 with decays by key
layout(constant_id = 7) const bool kQuads = true;  // vectors of floats begin on whole quads

layout(push_constant) uniform Push { StateScanPush push; };
layout(std430, set = 0, binding = 0) readonly buffer In { float values[]; };
layout(std430, set = 0, binding = 0) readonly buffer InQuads { vec4 quads[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Out { float result[]; };
layout(std430, set = 0, binding = 3) buffer State { uint state[]; };
layout(std430, set = 0, binding = 3) buffer StateQuads { uvec4 state_quads[]; };
layout(std430, set = 0, binding = 4) readonly buffer Gates { float gates[]; };

const bool kDelta = kRule != 0u;
const bool kByKey = kRule == 2u;
const uint kF32 = 0u;
const uint kF16 = 1u;
const uint kInt8 = 2u;
const uint kGroupVectors = 8u;  // of int8, that share a scale

const uint kVectors = (kKeyDim + 3u) / 4u;
const uint kLaneVectors = (kVectors + kPieces - 1u) / kPieces;
const uint kPaddedVectors = kLaneVectors * kPieces;
const uint kTeams = kLanes / kPieces;
const uint kBlockRows = kTeams * kRows;  // of a workgroup
const uint kGroups = (kVectors + kGroupVectors - 1u) / kGroupVectors;
const uint kRowWords = kFormat == kF32   ? kKeyDim
                       : kFormat == kF16 ? (kKeyDim + 1u) / 2u
                                         : (kKeyDim + 3u) / 4u;
const uint kSums = 2u * kRows + 1u;

vec4 s[kRows * kLaneVectors];
vec4 keys[kLaneVectors];  // the token's
float sums[kSums];  // by row: the state times the key, times the query; then the key times the query

shared vec4 staged_keys[kTokens * kPaddedVectors];
shared vec4 staged_queries[kTokens * kPaddedVectors];
shared float staged_values[kTokens * kBlockRows];
shared float staged_gates[kTokens * 2u];
shared vec4 staged_decays[kRule / 2u * kTokens * kPaddedVectors + 1u];  // by key, as kScaled
shared float lane_sums[2u * kSums * kLanes];  // two halves used in turn
// One value unless the format is int8. Not chosen between two constants: see kScratchWords in attention.comp.
const uint kScaled = kFormat / kInt8;
shared float largest[kScaled * kBlockRows * kGroups * kPieces + 1u];
shared uint scales[kScaled * kBlockRows * kGroups + 1u];  // bits

struct Place {
  uint head;
  uint first_row;  // of the head, in this workgroup
  uint team;
  uint piece;
  uint query_at;  // columns of `in`
  uint key_at;
  uint value_at;
  uint decay_at;
  uint factor_at;
};

bool inHead(uint row) { return row < push.value_dim; }
uint rowOf(Place place, uint r) { return place.first_row + r * kTeams + place.team; }

// Vector v of what begins at word `at`; zeros past its end.
vec4 inputVector(uint at, uint v) {
  if (v >= kVectors) {
    return vec4(0.0);
  }
  if (kQuads) {
    return quads[at / 4u + v];
  }
  vec4 vector = vec4(0.0);
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    if (4u * v + i < kKeyDim) {
      vector[i] = values[at + 4u * v + i];
    }
  }
  return vector;
}

// ---- The state in memory; `slot`: its first word, `row`: of all heads ----

uint scaleIndex(uint row, uint v) { return row * kGroups + v / kGroupVectors; }
uint scalesWord(uint slot) { return slot + push.heads * push.value_dim * kRowWords; }

vec4 load(uint slot, uint row, uint v) {
  const uint at = slot + row * kRowWords;
  vec4 vector = vec4(0.0);
  if (kFormat == kF32 && kQuads) {
    vector = uintBitsToFloat(state_quads[at / 4u + v]);
  } else if (kFormat == kF32) {
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      if (4u * v + i < kKeyDim) {
        vector[i] = uintBitsToFloat(state[at + 4u * v + i]);
      }
    }
  } else if (kFormat == kF16) {
    vector.xy = unpackHalf2x16(state[at + 2u * v]);
    if (2u * v + 1u < kRowWords) {
      vector.zw = unpackHalf2x16(state[at + 2u * v + 1u]);
    }
  } else {
    const uint index = scaleIndex(row, v);
    const uint scale = state[scalesWord(slot) + index / 2u] >> (16u * (index & 1u));
    vector = exactHalf(scale & 0xffffu) * int8Values(state[at + v]);
  }
  return vector;
}

// Returns what load() would. `scale`: bits, int8 only.
vec4 store(uint slot, uint row, uint v, vec4 vector, uint scale) {
  const uint at = slot + row * kRowWords;
  if (kFormat == kF32 && kQuads) {
    state_quads[at / 4u + v] = floatBitsToUint(vector);
  } else if (kFormat == kF32) {
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      if (4u * v + i < kKeyDim) {
        state[at + 4u * v + i] = floatBitsToUint(vector[i]);
      }
    }
  } else if (kFormat == kF16) {
    const uvec2 words = uvec2(packHalves(vector.xy), packHalves(vector.zw));
    state[at + 2u * v] = words.x;
    if (2u * v + 1u < kRowWords) {
      state[at + 2u * v + 1u] = words.y;
    }
    return vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
  } else {
    const float inverse = int8Inverse(scale);
    const uint word = int8Code(vector.x, inverse) | int8Code(vector.y, inverse) << 8 |
                      int8Code(vector.z, inverse) << 16 | int8Code(vector.w, inverse) << 24;
    state[at + v] = word;
    return exactHalf(scale) * int8Values(word);
  }
  return vector;
}

// Of every row, from the largest values that lanes have of its groups.
void chooseScales(uint slot, Place place) {
  const uint lane_group = kGroupVectors / kPieces;  // vectors of a group that a lane has
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    [[unroll]] for (uint g = 0u; g < kGroups; ++g) {
      float most = 0.0;
      [[unroll]] for (uint i = g * lane_group; i < min((g + 1u) * lane_group, kLaneVectors); ++i) {
        const vec4 sizes = abs(s[r * kLaneVectors + i]);
        most = max(most, max(max(sizes.x, sizes.y), max(sizes.z, sizes.w)));
      }
      largest[((r * kTeams + place.team) * kGroups + g) * kPieces + place.piece] = most;
    }
  }
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < kBlockRows * kGroups; i += kLanes) {
    float most = 0.0;
    [[unroll]] for (uint p = 0u; p < kPieces; ++p) {
      most = max(most, largest[i * kPieces + p]);
    }
    const uint scale = int8ScaleBits(most);
    scales[i] = scale;
    const uint row = place.first_row + i / kGroups;
    if (inHead(row)) {
      const uint index = (place.head * push.value_dim + row) * kGroups + i % kGroups;
      const uint word = scalesWord(slot) + index / 2u;
      // Neighbouring rows may share a word: each changes its own half.
      atomicAnd(state[word], 0xffff0000u >> (16u * (index & 1u)));
      atomicOr(state[word], scale << (16u * (index & 1u)));
    }
  }
  barrier();
}

// ---- Tokens ----

void stage(uint first, uint count, Place place) {
  const uint lane = gl_LocalInvocationIndex;
  for (uint i = lane; i < count * kPaddedVectors; i += kLanes) {
    const uint in_at = (first + i / kPaddedVectors) * push.in_stride;
    staged_keys[i] = inputVector(in_at + place.key_at, i % kPaddedVectors);
    staged_queries[i] = inputVector(in_at + place.query_at, i % kPaddedVectors);
    if (kByKey) {
      staged_decays[i] = inputVector(in_at + place.decay_at, i % kPaddedVectors);
    }
  }
  for (uint i = lane; i < count * kBlockRows; i += kLanes) {
    const uint row = min(place.first_row + i % kBlockRows, push.value_dim - 1u);
    staged_values[i] = values[(first + i / kBlockRows) * push.in_stride + place.value_at + row];
  }
  for (uint i = lane; i < 2u * count; i += kLanes) {
    staged_gates[i] = values[(first + i / 2u) * push.in_stride +
                             ((i & 1u) != 0u ? place.factor_at : place.decay_at)];
  }
}

float sumOf(vec4 vector) { return (vector.x + vector.y) + (vector.z + vector.w); }

// Of staged token i with the state as it finds it. What the token adds to the state is then a number times its key, so
// that all else there is to know is key times query, and lanes meet once a token.
void multiply(uint i, Place place) {
  vec4 with_key[kRows];
  vec4 with_query[kRows];
  vec4 key_query = vec4(0.0);
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    with_key[r] = with_query[r] = vec4(0.0);
  }
  [[unroll]] for (uint j = 0u; j < kLaneVectors; ++j) {
    const uint at = i * kPaddedVectors + j * kPieces + place.piece;
    const vec4 query = staged_queries[at];
    keys[j] = staged_keys[at];
    [[unroll]] for (uint r = 0u; kByKey && r < kRows; ++r) {
      s[r * kLaneVectors + j] *= staged_decays[at];
    }
    key_query += keys[j] * query;
    [[unroll]] for (uint r = 0u; r < kRows; ++r) {
      with_key[r] += s[r * kLaneVectors + j] * keys[j];
      with_query[r] += s[r * kLaneVectors + j] * query;
    }
  }
  const uint half_at = (i & 1u) * kSums * kLanes;
  const uint own = half_at + gl_LocalInvocationIndex;
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    lane_sums[own + 2u * r * kLanes] = sumOf(with_key[r]);
    lane_sums[own + (2u * r + 1u) * kLanes] = sumOf(with_query[r]);
  }
  lane_sums[own + 2u * kRows * kLanes] = sumOf(key_query);
  barrier();
  [[unroll]] for (uint n = 0u; n < kSums; ++n) {
    const uint team_at = half_at + n * kLanes + place.team * kPieces;
    sums[n] = 0.0;
    [[unroll]] for (uint p = 0u; p < kPieces; ++p) {
      sums[n] += lane_sums[team_at + p];
    }
  }
}

// Token t, which is staged as number i.
void takeIn(uint t, uint i, float skip, Place place) {
  multiply(i, place);
  const float decay = kByKey ? 1.0 : staged_gates[2u * i];  // else it is done
  const float factor = staged_gates[2u * i + 1u];
  float taken[kRows];
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    const float value = staged_values[i * kBlockRows + r * kTeams + place.team];
    taken[r] = factor * (kDelta ? value - decay * sums[2u * r] : value);
    const uint row = rowOf(place, r);
    if (place.piece == 0u && inHead(row)) {
      const float seen = decay * sums[2u * r + 1u] + taken[r] * sums[2u * kRows];
      result[t * push.out_stride + place.head * push.value_dim + row] =
          push.scale * seen + skip * value;
    }
  }
  [[unroll]] for (uint j = 0u; j < kLaneVectors; ++j) {
    [[unroll]] for (uint r = 0u; r < kRows; ++r) {
      s[r * kLaneVectors + j] = decay * s[r * kLaneVectors + j] + taken[r] * keys[j];
    }
  }
}

// Writes the rows to the slot, and rounds them to what the next token reads from it.
void save(uint slot, Place place) {
  if (kFormat == kInt8) {
    chooseScales(slot, place);
  }
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    [[unroll]] for (uint j = 0u; j < kLaneVectors; ++j) {
      const uint v = j * kPieces + place.piece;
      const uint row = rowOf(place, r);
      if (v < kVectors && inHead(row)) {
        const uint group = (r * kTeams + place.team) * kGroups + v / kGroupVectors;
        s[r * kLaneVectors + j] =
            store(slot, place.head * push.value_dim + row, v, s[r * kLaneVectors + j],
                  kFormat == kInt8 ? scales[group] : 0u);
      }
    }
  }
}

// Grid (blocks of a head's rows, heads, tokens where each writes a slot of its own; else 1). Tokens that follow each
// other belong to the first of them.
void main() {
  const uint begin = gl_WorkGroupID.z;
  const uint n_tokens = step_.header.n_tokens;
  const bool apart = gl_NumWorkGroups.z > 1u;
  if (begin >= n_tokens || followsInState(begin, push.view)) {
    return;
  }
  const uint head = gl_WorkGroupID.y;
  const uint lane = gl_LocalInvocationIndex;
  const uint key_head = push.tiled != 0u ? head % push.key_heads : head / (push.heads / push.key_heads);
  const uint n_keys = push.key_heads * kKeyDim;
  const uint decays_at = 2u * n_keys + push.heads * push.value_dim;
  const uint of_head = kByKey ? kKeyDim : 1u;  // decays
  const Place place = Place(head, gl_WorkGroupID.x * kBlockRows, lane / kPieces, lane % kPieces,
                            key_head * kKeyDim, n_keys + key_head * kKeyDim,
                            2u * n_keys + head * push.value_dim, decays_at + head * of_head,
                            decays_at + push.heads * of_head + head);
  const View view = viewOf(begin, push.view);
  const uint read = (view.first + view.begin) * push.slot_words;
  const uint rows_at = head * push.value_dim;

  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    [[unroll]] for (uint j = 0u; j < kLaneVectors; ++j) {
      const uint v = j * kPieces + place.piece;
      const uint row = rowOf(place, r);
      const bool there = view.count != 0u && v < kVectors && inHead(row);
      s[r * kLaneVectors + j] = there ? load(read, rows_at + row, v) : vec4(0.0);
    }
  }
  const float skip = kDelta ? 0.0 : gates[2u * push.heads + head];
  for (uint at = begin; at == begin || (at < n_tokens && followsInState(at, push.view));) {
    const uint end = apart ? at + 1u : n_tokens;
    const uint slot = (view.first + viewOf(at, push.view).slot) * push.slot_words;
    for (; at < end; at += kTokens) {
      const uint count = min(kTokens, end - at);
      barrier();
      stage(at, count, place);
      barrier();
      for (uint i = 0u; i < count; ++i) {
        takeIn(at + i, i, skip, place);
      }
    }
    save(slot, place);
  }
}
