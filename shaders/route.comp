// The experts of each token and their weights: RoutePush says which.
// Reads n_experts words a token and writes 2 a route; n_experts^2 comparisons, as each expert finds its own rank.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"
#include "lib/key.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 128u;
const uint kMostExperts = 512u;
const uint kMostUsed = 32u;

layout(push_constant) uniform Push { RoutePush push; };
layout(std430, set = 0, binding = 0) readonly buffer In { float values[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Routes { uint routes[]; };
layout(std430, set = 0, binding = 3) readonly buffer Bias { float bias[]; };

shared float scores[kMostExperts];
shared uint keys[kMostExperts];  // what experts are chosen by
shared float chosen[kMostUsed];
shared float group_scores[kMaxExpertGroups];

// What the experts' inputs become; every lane does some.
void score(uint in_at, float most) {
  for (uint e = gl_LocalInvocationIndex; e < push.n_experts; e += kLanes) {
    const float x = values[in_at + e];
    scores[e] = push.sigmoid != 0u ? 1.0 / (1.0 + exp(-x)) : exp(x - most);
  }
}

float scoreOf(uint key) {
  return uintBitsToFloat((key & 0x80000000u) != 0u ? key & 0x7fffffffu : ~key);
}

// Experts that are not in one of the best groups get the least key of all.
void keepGroups() {
  const uint size = push.n_experts / push.groups;
  for (uint g = gl_LocalInvocationIndex; g < push.groups; g += kLanes) {
    uint best = 0u;
    uint second = 0u;
    for (uint e = g * size; e < (g + 1u) * size; ++e) {
      second = max(second, min(best, keys[e]));
      best = max(best, keys[e]);
    }
    group_scores[g] = scoreOf(best) + (size > 1u ? scoreOf(second) : 0.0);
  }
  barrier();
  for (uint e = gl_LocalInvocationIndex; e < push.n_experts; e += kLanes) {
    const uint own = e / size;
    uint better = 0u;
    for (uint g = 0u; g < push.groups; ++g) {
      better += group_scores[g] > group_scores[own] ||
                        (group_scores[g] == group_scores[own] && g < own)
                    ? 1u
                    : 0u;
    }
    keys[e] = better < push.used_groups ? keys[e] : 0u;
  }
  barrier();
}

// One workgroup per token.
void main() {
  const uint lane = gl_LocalInvocationIndex;
  const uint t = gl_WorkGroupID.x;
  if (t >= step_.header.n_tokens) {
    return;
  }
  const uint in_at = t * push.in_stride;
  float most = values[in_at];
  for (uint e = 1u; e < push.n_experts; ++e) {
    most = max(most, values[in_at + e]);
  }
  score(in_at, most);
  barrier();
  float sum = 0.0;
  for (uint e = 0u; push.sigmoid == 0u && e < push.n_experts; ++e) {
    sum += scores[e];
  }
  const float scale = push.sigmoid != 0u ? 1.0 : 1.0 / sum;
  // Without a bias inputs are in the order of the scores, and are not rounded.
  for (uint e = lane; e < push.n_experts; e += kLanes) {
    const bool as_given = push.has_bias == 0u && push.groups <= 1u;
    const float by = as_given ? values[in_at + e]
                              : scores[e] * scale + (push.has_bias != 0u ? bias[e] : 0.0);
    keys[e] = keyOf(floatBitsToUint(by));
  }
  barrier();
  if (push.groups > 1u) {
    keepGroups();
  }
  for (uint e = lane; e < push.n_experts; e += kLanes) {
    const uint key = keys[e];
    uint rank = 0u;
    for (uint other = 0u; other < push.n_experts; ++other) {
      rank += keys[other] > key || (keys[other] == key && other < e) ? 1u : 0u;
    }
    if (rank < push.n_used) {
      routes[t * push.n_used + rank] = e;
      chosen[rank] = scores[e] * scale;
    }
  }
  barrier();
  float total = 1.0;
  if (push.normalised != 0u) {
    total = 0.0;
    for (uint k = 0u; k < push.n_used; ++k) {
      total += chosen[k];
    }
    total = max(total, kLeastRouteSum);
  }
  for (uint k = lane; k < push.n_used; k += kLanes) {
    routes[push.routes + t * push.n_used + k] = floatBitsToUint(chosen[k] / total * push.scale);
  }
}
