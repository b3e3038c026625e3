// softmax(scale * q . K) V over the slots a token sees, for up to kQueries queries of one KV head
// (heads of one token, or of neighbouring ones) and one split of the slots. Reads each key and
// value of the slots once per kQueries queries; 4 * head_dim operations a slot and query, plus
// unpacking once.
//
// LATENT: there is one KV head, of latents and of keys behind them (LatentAttentionPush); values are the latents.
//
// A team of kPieces lanes holds one vector of head_dim values, kLaneOctets octets a lane: of every
// query and of every sum. Teams walk the slots side by side, each with a running softmax of its own
// (Milakov and Gimelshein 2018), and are joined at the end. A team of one lane needs nothing from
// other lanes until then.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/layout.h"
#include "lib/half.glsl"
#include "lib/activation.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 64u;
layout(constant_id = 1) const uint kHeadDim = 64u;
layout(constant_id = 2) const uint kQueries = 4u;
layout(constant_id = 3) const uint kLaneOctets = 1u;
layout(constant_id = 4) const uint kFlags = 0u;
const bool kCapped = (kFlags & 1u) != 0u;  // push.soft_cap is none
const bool kScored = (kFlags & 2u) != 0u;  // every head has one more score
const bool kAlibi = (kFlags & 4u) != 0u;   // push.alibi_heads is some
layout(constant_id = 6) const bool kApart = false;  // tiles have queries of one token only
// The larger of 2 * kScoreWords and kLanes * kLaneValues. Not computed here: a driver of Adreno allocates too little for an array
// whose length is chosen between constants (ncnn#6972).
layout(constant_id = 7) const uint kScratchWords = 1024u;

#if defined(LATENT)
layout(constant_id = 5) const uint kValueDim = 32u;  // of kHeadDim
layout(push_constant) uniform Push { LatentAttentionPush push; };
const uint kKvHeads = 1u;
#define ORIEL_KV_HEADS kKvHeads
#define ORIEL_SOFT_CAP 0.0
#define ORIEL_ALIBI_HEADS 1u
#else
const uint kValueDim = kHeadDim;
layout(push_constant) uniform Push { AttentionPush push; };
#define ORIEL_KV_HEADS push.n_kv_heads
#define ORIEL_SOFT_CAP push.soft_cap
#define ORIEL_ALIBI_HEADS push.alibi_heads
#endif
layout(std430, set = 0, binding = 0) readonly buffer Queries { float queries[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Out { float result[]; };
#include "lib/kv.glsl"
#include "lib/kv_read.glsl"
layout(std430, set = 0, binding = 5) readonly buffer Scores { float more_scores[]; };

const uint kPieces = (kOctets + kLaneOctets - 1u) / kLaneOctets;
const uint kTeams = kLanes / kPieces;
const uint kSlots = 2u;  // that a team works on at a time
const uint kLaneVectors = 2u * kLaneOctets;
const uint kLaneValues = 8u * kLaneOctets;
const uint kScoreWords = kLanes * kSlots * kQueries;

// Below every score. Far from overflow when a score is subtracted and the difference multiplied by log2(e), as drivers
// compute exp().
const float kLowest = -1.0e30;

vec4 query[kQueries * kLaneVectors];
vec4 total[kQueries * kLaneVectors];
float maximum[kQueries];
float sum[kQueries];
float scores[kSlots * kQueries];  // [slot][query], then the weights
// What a query sees: sink slots, and ring slots from `ring_from` on, counted from the first that
// the workgroup walks.
uint sinks_seen[kQueries];
uint ring_from[kQueries];
uint ring_seen[kQueries];
float slope[kQueries];  // kAlibi
float place_of[kQueries];

// Two halves of scores used in turn, then totals.
shared float scratch[kScratchWords];
shared float team_maximum[kTeams * kQueries];
shared float team_sum[kTeams * kQueries];

struct Place {  // of a lane
  uint team;    // kTeams: of none
  uint first_octet;
};

void loadQueries(bool for_sinks, uint first, uint last, uint kv_head, Place place) {
  const uint heads = push.n_heads / ORIEL_KV_HEADS;
  [[unroll]] for (uint q = 0u; q < kQueries; ++q) {
    const uint index = min(first + q, last);
    const uint head = kv_head * heads + index % heads;
#if defined(LATENT)
    const uint rotated = kHeadDim - kValueDim;
    const uint latent_at = index / heads * push.query_stride + head * (kValueDim + 2u * rotated);
    const uint key_at = latent_at + (for_sinks ? rotated : 0u);
#else
    const uint which = 2u * head + (for_sinks ? 1u : 0u);
    const uint head_at = index / heads * push.query_stride + which * kHeadDim;
#endif
    [[unroll]] for (uint i = 0u; i < kLaneValues; ++i) {
      const uint dim = 8u * place.first_octet + i;
#if defined(LATENT)
      const uint at = dim < kValueDim ? latent_at : key_at;
#else
      const uint at = head_at;
#endif
      query[q * kLaneVectors + i / 4u][i % 4u] =
          dim < kHeadDim ? push.scale * queries[at + dim] : 0.0;
    }
  }
}

// This lane's share of the products of all queries with a key: scores first_score and on.
void dots(const bool sink, Side side, uint slot, Place place, uint first_score) {
  const uint at = wordOf(side, sink, slot, kKeyWords);
  [[unroll]] for (uint q = 0u; q < kQueries; ++q) {
    scores[first_score + q] = 0.0;
  }
  vec4 part[kQueries];
  uint scales = 0u;
  [[unroll]] for (uint o = 0u; o < kLaneOctets; ++o) {
    const uint octet = place.first_octet + o;
    vec4 a, b;
    keyOctet(sink, at, min(octet, kOctets - 1u), o, a, b);
    const bool first = o % kGroupOctets == 0u;
    if (kLowBitKeys && !sink && o % (kScalesAtOnce * kGroupOctets) == 0u) {
      scales = ORIEL_SCALES(side, keyWord, slot, min(octet, kOctets - 1u));
    }
    [[unroll]] for (uint q = 0u; q < kQueries; ++q) {
      const uint v = q * kLaneVectors + 2u * o;
      part[q] = (first ? vec4(0.0) : part[q]) + query[v] * a + query[v + 1u] * b;
    }
    if (o % kGroupOctets == kGroupOctets - 1u || o == kLaneOctets - 1u) {
      float scale = 1.0;
      if (kLowBitKeys && !sink) {
        scale = unitOf(kKeys) * scaleOf(scales, o);
      }
      [[unroll]] for (uint q = 0u; q < kQueries; ++q) {
        scores[first_score + q] +=
            scale * ((part[q].x + part[q].y) + (part[q].z + part[q].w));
      }
    }
  }
}

void addValues(const bool sink, Side side, uint slot, Place place, uint first_score) {
  const uint at = wordOf(side, sink, slot, kValueWords);
  float scale = 1.0;
  uint scales = 0u;
  [[unroll]] for (uint o = 0u; o < kLaneOctets; ++o) {
    const uint octet = min(place.first_octet + o, kOctets - 1u);
    if (kLowBitValues && !sink && o % (kScalesAtOnce * kGroupOctets) == 0u) {
      scales = ORIEL_SCALES(side, valueWord, slot, octet);
    }
    if (kLowBitValues && !sink && o % kGroupOctets == 0u) {
      scale = unitOf(kValues) * scaleOf(scales, o);
    }
    vec4 a, b;
    valueOctet(sink, at, octet, o, a, b);
    [[unroll]] for (uint q = 0u; q < kQueries; ++q) {
      const uint v = q * kLaneVectors + 2u * o;
      const float weight = scale * scores[first_score + q];
      total[v] += weight * a;
      total[v + 1u] += weight * b;
    }
  }
}

// Slots begin .. end - 1 of the walk, sinks or ring slots (from `ring_begin` on, wrapping at `ring`).
void walk(const bool sink, Side keys, Side values, uint begin, uint end, uint ring_begin,
          uint ring, Place place) {
  uint turn = 0u;
  for (uint tile = begin; tile < end; tile += kTeams * kSlots) {
    uint slots[kSlots];
    [[unroll]] for (uint u = 0u; u < kSlots; ++u) {
      const uint i = min(tile + u * kTeams + place.team, end - 1u);
      uint slot = sink ? i : ring_begin + i;
      slot -= !sink && slot >= ring ? ring : 0u;
      slots[u] = slot;
      dots(sink, keys, slot, place, u * kQueries);
    }
    if (kPieces > 1u) {
      const uint half_at = (turn & 1u) * kScoreWords;
      const uint lane = gl_LocalInvocationIndex;
      ++turn;
      [[unroll]] for (uint i = 0u; i < kSlots * kQueries; ++i) {
        scratch[half_at + i * kLanes + lane] = scores[i];
      }
      barrier();
      const uint first_lane = min(place.team, kTeams - 1u) * kPieces;
      [[unroll]] for (uint i = 0u; i < kSlots * kQueries; ++i) {
        float score = 0.0;
        [[unroll]] for (uint p = 0u; p < kPieces; ++p) {
          score += scratch[half_at + i * kLanes + first_lane + p];
        }
        scores[i] = score;
      }
    }
    if (kCapped) {
      [[unroll]] for (uint i = 0u; i < kSlots * kQueries; ++i) {
        scores[i] = ORIEL_SOFT_CAP * tanhOf(scores[i] / ORIEL_SOFT_CAP);
      }
    }
    if (kAlibi) {
      [[unroll]] for (uint i = 0u; i < kSlots * kQueries; ++i) {
        scores[i] -= slope[i % kQueries] * abs(float(slots[i / kQueries]) - place_of[i % kQueries]);
      }
    }
    [[unroll]] for (uint q = 0u; q < kQueries; ++q) {
      float most = maximum[q];
      bool seen[kSlots];
      [[unroll]] for (uint u = 0u; u < kSlots; ++u) {
        const uint i = tile + u * kTeams + place.team;
        // Below the first slot that the query sees this wraps to a large number.
        const uint from = i - ring_from[q];
        const bool in_reach = sink ? i < sinks_seen[q]
                                   : min(from, from + ring) < ring_seen[q];
        seen[u] = in_reach && i < end;
        most = seen[u] ? max(most, scores[u * kQueries + q]) : most;
      }
      const float correction = exp(maximum[q] - most);
      float weight_sum = sum[q] * correction;
      [[unroll]] for (uint u = 0u; u < kSlots; ++u) {
        const float weight = seen[u] ? exp(scores[u * kQueries + q] - most) : 0.0;
        scores[u * kQueries + q] = weight;
        weight_sum += weight;
      }
      maximum[q] = most;
      sum[q] = weight_sum;
      [[unroll]] for (uint v = 0u; v < kLaneVectors; ++v) {
        total[q * kLaneVectors + v] *= correction;
      }
    }
    [[unroll]] for (uint u = 0u; u < kSlots; ++u) {
      addValues(sink, values, slots[u], place, u * kQueries);
    }
  }
}

// Brings the teams to one maximum each query and adds them up: results of queries first .. last.
void join(uint split, uint first, uint last, uint kv_head, Place place) {
  const uint heads = push.n_heads / ORIEL_KV_HEADS;
  const uint lane = gl_LocalInvocationIndex;
  if (lane % kPieces == 0u && place.team < kTeams) {
    [[unroll]] for (uint q = 0u; q < kQueries; ++q) {
      team_maximum[place.team * kQueries + q] = maximum[q];
      team_sum[place.team * kQueries + q] = sum[q];
    }
  }
  barrier();
  [[unroll]] for (uint q = 0u; q < kQueries; ++q) {
    float most = kLowest;
    for (uint team = 0u; team < kTeams; ++team) {
      most = max(most, team_maximum[team * kQueries + q]);
    }
    const uint index = first + q;
    const uint head = kv_head * heads + index % heads;
    float whole = 0.0;
    if (kScored && split == 0u) {
      const float score = more_scores[head];
      most = max(most, score);
      whole = exp(score - most);
    }
    for (uint team = 0u; team < kTeams; ++team) {
      const uint at = team * kQueries + q;
      whole += team_sum[at] * exp(team_maximum[at] - most);
    }
    const float correction = exp(maximum[q] - most);
    [[unroll]] for (uint i = 0u; i < kLaneValues; ++i) {
      scratch[i * kLanes + lane] = correction * total[q * kLaneVectors + i / 4u][i % 4u];
    }
    barrier();
    const uint at = push.splits == 1u
                        ? index / heads * push.out_stride + head * kValueDim
                        : ((index / heads * push.n_heads + head) * push.splits + split) *
                              (kValueDim + kPartialExtra);
    for (uint i = lane; i < kLaneValues * kPieces; i += kLanes) {
      const uint dim = i % kPieces * kLaneValues + i / kPieces;
      float value = 0.0;
      for (uint team = 0u; team < kTeams; ++team) {
        value += scratch[i / kPieces * kLanes + team * kPieces + i % kPieces];
      }
      if (index <= last && dim < kValueDim) {
        result[at + dim] = push.splits != 1u ? value : whole > 0.0 ? value / whole : 0.0;
      }
    }
    if (push.splits != 1u && lane == 0u && index <= last) {
      result[at + kValueDim] = most;
      result[at + kValueDim + 1u] = whole;
    }
    barrier();
  }
}

// Grid (KV heads, tiles of queries, splits). Queries of a KV head are numbered token by token; of several splits each
// works on queries of one token only (kApart). Splits that no slot falls into are left out, but for the first.
void main() {
  const uint kv_head = gl_WorkGroupID.x;
  const uint split = gl_WorkGroupID.z;
  const uint heads = push.n_heads / ORIEL_KV_HEADS;
  const uint token_tiles = (heads + kQueries - 1u) / kQueries;
  const uint tile = gl_WorkGroupID.y;
  const uint first = kApart ? tile / token_tiles * heads + tile % token_tiles * kQueries
                            : tile * kQueries;
  if (first >= step_.header.n_tokens * heads) {
    return;
  }
  const uint queries_end = kApart ? (first / heads + 1u) * heads : step_.header.n_tokens * heads;
  const uint last = min(first + kQueries, queries_end) - 1u;
  if (kApart && split != 0u) {
    const View view = viewOf(first / heads, push.view);
    if (split * push.split_slots >= view.n_sinks + view.count) {
      return;
    }
  }

  const uint lane = gl_LocalInvocationIndex;
  const Place place = Place(lane / kPieces, lane % kPieces * kLaneOctets);
  [[unroll]] for (uint q = 0u; q < kQueries; ++q) {
    maximum[q] = kLowest;
    sum[q] = 0.0;
  }
  [[unroll]] for (uint v = 0u; v < kQueries * kLaneVectors; ++v) {
    total[v] = vec4(0.0);
  }
  // What is walked: all that one of the tile's tokens sees; where they use several memories, one after the other.
  uint next = first;
  do {
    const uint base = tokenBase(next / heads);
    const View first_view = viewOf(next / heads, push.view);
    const uint ring_begin = first_view.begin;
    const uint ring = first_view.ring;
    uint end_query = next;
    bool same = true;
    uint n_sinks = 0u;
    uint n_ring = 0u;
    [[unroll]] for (uint q = 0u; q < kQueries; ++q) {
      const uint index = min(first + q, last);
      const uint t = index / heads;
      const View view = viewOf(t, push.view);
      bool here = true;
      if (kQueries > 1u) {
        here = index >= next;
        same = same && (!here || tokenBase(t) == base);
        here = here && same;
        end_query = here ? index + 1u : end_query;
      }
      sinks_seen[q] = here ? view.n_sinks : 0u;
      ring_seen[q] = here ? view.count : 0u;
      ring_from[q] = here ? view.begin - ring_begin + (view.begin < ring_begin ? ring : 0u) : 0u;
      if (kAlibi) {
        const uint head = kv_head * heads + index % heads;
        const uint m = ORIEL_ALIBI_HEADS;
        slope[q] = exp2((head < m ? -8.0 * float(head + 1u) : -4.0 * float(2u * (head - m) + 1u)) / float(m));
        place_of[q] = float(view.slot);
      }
      n_sinks = max(n_sinks, sinks_seen[q]);
      n_ring = max(n_ring, ring_from[q] + ring_seen[q]);
    }
    n_ring = min(n_ring, ring);
    const uint visible = n_sinks + n_ring;
    const uint begin = split * push.split_slots;
    const uint end = push.splits == 1u ? visible : min(begin + push.split_slots, visible);
    const Side keys = sideOf(first_view, kv_head, kKeyWords);
    const Side values = sideOf(first_view, kv_head, kValueWords);
    if (kPieces > 1u && next != first) {
      barrier();
    }
    if (begin < min(end, n_sinks)) {
      loadQueries(true, first, last, kv_head, place);
      walk(true, keys, values, begin, min(end, n_sinks), 0u, ring, place);
    }
    if (kPieces > 1u) {
      barrier();
    }
    if (max(begin, n_sinks) < end) {
      loadQueries(false, first, last, kv_head, place);
      walk(false, keys, values, max(begin, n_sinks) - n_sinks, end - n_sinks, ring_begin, ring,
           place);
    }
    next = end_query;
  } while (kQueries > 1u && next <= last);
  join(split, first, last, kv_head, place);
}
