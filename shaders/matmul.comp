// out[t][out_first + r] (+)= weights[r] . in[t], accumulated in float32.
// Reads every weight once per kTokens tokens and the inputs once per kRows rows; 2 operations per
// weight and token, plus unpacking once per weight and kTokens tokens.
//
// EXPERTS: inputs are routes of a step, in the order of their experts; a workgroup works on routes of one expert, whose
// matrix is one of a stack. ExpertMatmulPush says which.
// HEADS: every head of a token is multiplied by a matrix of its own; a workgroup works on one head.
// Otherwise the input may be made here: lib/made_row.glsl.
// HALF: products in half precision, with the input that stage_half left; sums of 32 values or fewer go on in float32.
//
// A workgroup works on kTeamLanes * kRows rows. Lane i of a team owns rows i, i + kTeamLanes, ...
// of them; the kLanes / kTeamLanes teams share the units and add up what they found at the end.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#if defined(HALF)
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "shared/layout.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 64u;   // the workgroup's size, whole teams
layout(constant_id = 1) const uint kRows = 2u;    // rows of a lane
layout(constant_id = 2) const uint kTokens = 1u;  // tokens a workgroup works on
layout(constant_id = 3) const uint kTeamLanes = 16u;

#if defined(EXPERTS)
layout(push_constant) uniform Push { ExpertMatmulPush push; };
layout(std430, set = 0, binding = 4) readonly buffer Routes { uint routes[]; };
layout(std430, set = 0, binding = 5) readonly buffer Slots { uint slots[]; };
#elif defined(HEADS)
layout(push_constant) uniform Push { HeadMatmulPush push; };
#include "lib/step.glsl"
#else
layout(push_constant) uniform Push {
  MatmulPush push;
  layout(offset = 64) uvec4 maker[4];
};
#include "lib/step.glsl"
#endif
layout(std430, set = 0, binding = 2) buffer Out { float result[]; };
#if defined(HALF)
layout(std430, set = 0, binding = 4) readonly buffer Staged { uvec4 staged[]; };
#include "lib/weights_half.glsl"
#define Quad f16vec4
#else
#include "lib/weights.glsl"
#define Quad vec4
#if !defined(EXPERTS) && !defined(HEADS)
#define MAKES
#include "lib/made_row.glsl"
#endif
#if defined(HEADS)  // which begin anywhere
layout(std430, set = 0, binding = 3) readonly buffer In { float values[]; };
vec4 inputQuad(uint at) {
  return vec4(values[at], values[at + 1u], values[at + 2u], values[at + 3u]);
}
#else
layout(std430, set = 0, binding = 3) readonly buffer In { vec4 values[]; };
layout(set = 0, binding = 8, rgba32f) readonly uniform imageBuffer value_texels;
vec4 inputQuad(uint at) {
  if (kTexels) {
    return imageLoad(value_texels, int(at));
  }
  return values[at];
}
#endif
#endif

float sums[kRows * kTokens];                    // [row][token]
shared float partial[kLanes * kRows * kTokens];  // [row][token][lane]

#if !defined(HALF)
float total(vec4 v) { return (v.x + v.y) + (v.z + v.w); }

// Inputs are added up once for all rows of a lane: compilers see that it is the same sum.
float scaledDot(vec4 v[kUnitVectors], UnitScale s, vec4 x[kUnitVectors]) {
  vec2 dots = vec2(0.0);
  vec2 sums = vec2(0.0);
  [[unroll]] for (uint h = 0u; h < 2u; ++h) {
    const uint i = h * 4u;
    dots[h] = total((v[i] * x[i] + v[i + 1u] * x[i + 1u]) +
                    (v[i + 2u] * x[i + 2u] + v[i + 3u] * x[i + 3u]));
    if (kHasMinimum) {
      sums[h] = total((x[i] + x[i + 1u]) + (x[i + 2u] + x[i + 3u]));
    }
  }
  if (!kHalfScales) {
    dots.x += dots.y;
    sums.x += sums.y;
  }
  float sum = s.scale.x * dots.x;
  if (kHalfScales) {
    sum += s.scale.y * dots.y;
  }
  if (kHasMinimum && kHalfScales) {
    sum -= s.minimum.x * sums.x + s.minimum.y * sums.y;
  } else if (kHasMinimum) {
    sum -= s.minimum.x * sums.x;
  }
  return sum;
}
#endif

// Rows of inputs and of outputs, tokens or places of routes, and the row of the slice where the matrix for them begins.
struct Tile {
  uint first;
  uint end;
  uint matrix;
};

#if defined(EXPERTS)
// Which routes a workgroup works on, and with which matrix.

uint beginOf(uint expert) { return routes[kRouteParts * push.routes + expert]; }
uint routeAt(uint place) { return routes[3u * push.routes + place]; }

// The input of a place.
uint inputOf(uint place) { return push.of_tokens != 0u ? routeAt(place) / push.n_used : place; }

// Places first .. end - 1 of the expert; none where its matrix is not in this slice.
Tile tileOfExpert(uint expert, uint first, uint end) {
  // Wraps for those before the slice, and for none.
  const uint slot = (push.has_slots != 0u ? slots[expert] : expert) - push.first;
  const uint groups = (push.rows + kGroupRows - 1u) / kGroupRows;
  return Tile(first, slot < push.count ? end : first, slot * groups * kGroupRows);
}

// Places are cut where an expert of the slice begins and at every kTokens-th, counted from the first of them: tile
// `index` goes from cut number `index` to the next and may be empty. An expert's cut comes before another at the same
// place, so that of expert e has number e + (its places before it - 1) / kTokens, rounded down.
Tile tileOf(uint index) {
  const uint n_routes = beginOf(push.n_experts);
  if (kTokens == 1u) {  // far fewer routes than experts: a tile for each
    return index < n_routes ? tileOfExpert(routes[routeAt(index)], index, index + 1u)
                            : Tile(0u, 0u, 0u);
  }
  const uint first_expert = push.has_slots != 0u ? 0u : push.first;
  const uint base = beginOf(first_expert);
  uint low = 0u;
  uint high = push.has_slots != 0u ? push.n_experts : push.count;
  while (high - low > 1u) {
    const uint middle = (low + high) / 2u;
    const uint before = beginOf(first_expert + middle) - base;
    if (middle + (max(before, 1u) - 1u) / kTokens <= index) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const uint block = base + (index - low) * kTokens;
  const uint expert = first_expert + low;
  const uint begin = max(beginOf(expert), block);
  return tileOfExpert(expert, begin, max(begin, min(beginOf(expert + 1u), block + kTokens)));
}
#elif defined(HEADS)
uint headOf(uint index) { return index % push.count; }
Tile tileOf(uint index) {
  const uint groups = (push.rows + kGroupRows - 1u) / kGroupRows;
  return Tile(index / push.count * kTokens, step_.header.n_tokens,
              headOf(index) * groups * kGroupRows);
}
#else
Tile tileOf(uint index) { return Tile(index * kTokens, rowsOf(push.of_outputs), 0u); }
#endif

#if defined(HEADS)
const uint kQuadStep = 4u;  // inputs are counted in words
#else
const uint kQuadStep = 1u;
#endif

// Where a token's input begins.
uint inputRow(uint token) {
#if defined(HALF)
  return token * push.units * (kStagedUnitWords / 4u);
#elif defined(EXPERTS)
  return inputOf(token) * (push.in_stride / 4u);
#elif defined(HEADS)
  return token * push.in_stride + (push.first + headOf(gl_WorkGroupID.x)) * push.in_head;
#else
  return token * (push.in_stride / 4u);
#endif
}

// Quad i of a unit's input; `first` begins the span.
#if !defined(HALF)
vec4 inputOfUnit(uint in_at, uint first, uint unit, uint i) {
#if defined(MAKES)
  if (kMakes) {
    return uintBitsToFloat(span[(unit - first) * kSpanPitch + i]);
  }
#endif
  return inputQuad(in_at + kQuadStep * (kUnitVectors * unit + i));
}
#endif

// Rows and tokens past the end repeat the last one; their sums are never written.
void accumulate(uint first_row, Tile tile, uint team, uint teams) {
  WeightRow rows[kRows];
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    const uint row = min(first_row + r * kTeamLanes, push.rows - 1u);
    rows[r] = weightRow(push.group_words, push.side_word, tile.matrix + row);
  }
  uint in_at[kTokens];
  [[unroll]] for (uint t = 0u; t < kTokens; ++t) {
    in_at[t] = inputRow(min(tile.first + t, tile.end - 1u));
  }
  [[unroll]] for (uint i = 0u; i < kRows * kTokens; ++i) {
    sums[i] = 0.0;
  }
#if defined(MAKES)
  const uint lane = gl_LocalInvocationIndex;
  float factor = 1.0;
  if (kMakes) {
    factor = rowFactor(tile.first, lane);
  }
  const uint units = kMakes ? kSpanLength : push.units;
  uint first = 0u;
  do {
    if (kMakes) {
      makeSpan(tile.first, first, factor, lane);
    }
    const uint end = min(first + units, push.units);
#else
  {
    const uint first = 0u;
    const uint end = push.units;
#endif
    for (uint unit = first + team; unit < end; unit += teams) {
      Quad v[kRows][kUnitVectors];
      UnitScale s[kRows];
      [[unroll]] for (uint r = 0u; r < kRows; ++r) {
#if defined(HALF)
        loadHalves(rows[r], unit, v[r], s[r]);
#else
        loadUnit(rows[r], unit, v[r]);
        s[r] = unitScale(rows[r], unit);
#endif
      }
      [[unroll]] for (uint t = 0u; t < kTokens; ++t) {
#if defined(HALF)
        const StagedUnit x = stagedUnit(in_at[t], push.units, unit);
#else
        vec4 x[kUnitVectors];
        [[unroll]] for (uint i = 0u; i < kUnitVectors; ++i) {
          x[i] = inputOfUnit(in_at[t], first, unit, i);
        }
#endif
        [[unroll]] for (uint r = 0u; r < kRows; ++r) {
          sums[r * kTokens + t] += scaledDot(v[r], s[r], x);
        }
      }
    }
#if defined(MAKES)
    first += units;
  } while (kMakes && first < push.units);
#else
  }
#endif
}

// Grid (token tiles, row tiles, further row tiles).
void main() {
  const Tile tile = tileOf(gl_WorkGroupID.x);
  const uint tile_row =
      (gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y) * kRows * kTeamLanes;
  if (tile.first >= tile.end || tile_row >= push.rows) {
    return;
  }
  const uint lane = gl_LocalInvocationIndex;
  prepareWeights(lane, kLanes);
  const uint teams = kLanes / kTeamLanes;
  accumulate(tile_row + lane % kTeamLanes, tile, lane / kTeamLanes, teams);
  [[unroll]] for (uint i = 0u; i < kRows * kTokens; ++i) {
    partial[i * kLanes + lane] = sums[i];
  }
  barrier();
  for (uint i = lane; i < kRows * kTokens * kTeamLanes; i += kLanes) {
    const uint pair = i / kTeamLanes;  // row of a lane and token
    const uint row = tile_row + pair / kTokens * kTeamLanes + i % kTeamLanes;
    const uint token = tile.first + pair % kTokens;
    if (row >= push.rows || token >= tile.end) {
      continue;
    }
    float sum = 0.0;
    for (uint team = 0u; team < teams; ++team) {
      sum += partial[pair * kLanes + team * kTeamLanes + i % kTeamLanes];
    }
#if defined(HALF)
    sum *= uintBitsToFloat(staged[inputRow(token) + push.units * (kUnit / 8u)].x);
#endif
#if defined(HEADS)
    const uint head_at = (push.first + headOf(gl_WorkGroupID.x)) * push.out_head;
#else
    const uint head_at = 0u;
#endif
    const uint at = token * push.out_stride + push.out_first + head_at + row;
#if defined(HEADS)
    result[at] = sum;
#else
    result[at] = push.accumulate != 0u ? result[at] + sum : sum;
#endif
  }
}
