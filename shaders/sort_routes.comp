// The routes of a step in the order of their experts: SortRoutesPush says what is written. Experts are counted, then
// each finds its own routes.
// Reads the routes twice, the second time once for each expert of a lane, from shared memory.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 128u;
const uint kMostExperts = 512u;
const uint kRoutesAtATime = 1024u;

layout(push_constant) uniform Push { SortRoutesPush push; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) buffer Routes { uint routes[]; };

shared uint counts[kMostExperts];
shared uint next[kMostExperts];  // place of the next route of an expert
shared uint some[kRoutesAtATime];

// Those of the experts of this lane among routes first .. first + count - 1, which are in `some`.
void place(uint first, uint count) {
  for (uint e = gl_LocalInvocationIndex; e < push.n_experts; e += kLanes) {
    uint at = next[e];
    for (uint i = 0u; counts[e] != 0u && i < count; ++i) {
      if (some[i] == e) {
        routes[2u * push.routes + first + i] = at;
        routes[3u * push.routes + at] = first + i;
        ++at;
      }
    }
    next[e] = at;
  }
}

// One workgroup.
void main() {
  const uint lane = gl_LocalInvocationIndex;
  const uint n = step_.header.n_tokens * push.n_used;
  for (uint e = lane; e < push.n_experts; e += kLanes) {
    counts[e] = 0u;
  }
  barrier();
  for (uint r = lane; r < n; r += kLanes) {
    atomicAdd(counts[min(routes[r], push.n_experts - 1u)], 1u);
  }
  barrier();
  for (uint e = lane; e < push.n_experts; e += kLanes) {
    uint before = 0u;
    for (uint other = 0u; other < e; ++other) {
      before += counts[other];
    }
    next[e] = before;
    routes[kRouteParts * push.routes + e] = before;
  }
  if (lane == 0u) {
    routes[kRouteParts * push.routes + push.n_experts] = n;
  }
  for (uint first = 0u; first < n; first += kRoutesAtATime) {
    const uint count = min(n - first, kRoutesAtATime);
    barrier();
    for (uint i = lane; i < count; i += kLanes) {
      some[i] = min(routes[first + i], push.n_experts - 1u);
    }
    barrier();
    place(first, count);
  }
}
