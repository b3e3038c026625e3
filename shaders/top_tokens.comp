// The best tokens, in order, from the logits and the largest key of each block of them.
// If kTopCapacity blocks have a key as good as `low`, so have as many tokens, and no worse one is among the
// best: `low` is found by bisection, the blocks that reach it are read again, what reaches it there is
// ranked. Reads `blocks` words and (n_vocab / blocks) for each of some 150 blocks. Where more tokens than fit
// are as good as `low` (many equals), only the very best is given.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/layout.h"

const uint kLanes = 128u;
layout(local_size_x = 128) in;

layout(push_constant) uniform Push { TopPush push; };
layout(std430, set = 0, binding = 0) readonly buffer Logits { uint logits[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Top { TopTokens tops[]; };
layout(std430, set = 0, binding = 3) readonly buffer Keys { uint keys[]; };
#include "lib/step.glsl"
#include "lib/top.glsl"

const uint kBlocksOfLane = kMaxTopBlocks / kLanes;
const uint kRoom = 2u * kTopCapacity;
// So few blocks need no better bound.
const uint kFewBlocks = kTopCapacity + kTopCapacity / 4u;
const uint kRounds = 32u;  // halve any range of keys to one

shared uint highest;
shared uint reached[kRounds + 1u];  // blocks, of each round; a round of its own is cleared already
shared uint n_chosen;
shared uint n_found;
shared uint best_id;
shared uint chosen[kRoom];   // blocks
shared uint found_key[kRoom];
shared uint found_id[kRoom];

void main() {
  const uint lane = gl_LocalInvocationIndex;
  const uint output_index = gl_WorkGroupID.x;
  if (!isWanted(output_index)) {
    return;
  }
  const uint output_row = outputOf(output_index);
  const uint row = output_row * push.n_vocab;
  const uint place = tokenPlace(outputToken(output_row));
  if (lane == 0u) {
    highest = 0u;
    n_chosen = 0u;
    n_found = 0u;
    best_id = 0xffffffffu;
  }
  if (lane <= kRounds) {
    reached[lane] = 0u;
  }
  barrier();

  uint mine[kBlocksOfLane];
  uint most = 0u;
  uint count = 0u;
  [[unroll]] for (uint i = 0u; i < kBlocksOfLane; ++i) {
    const uint block = lane + i * kLanes;
    mine[i] = block < push.blocks ? keys[output_index * push.blocks + block] : 0u;
    most = max(most, mine[i]);
    count += mine[i] != 0u ? 1u : 0u;
  }
  atomicMax(highest, most);
  atomicAdd(reached[0], count);
  barrier();

  uint low = 1u;
  uint high = highest + 1u;
  uint blocks = reached[0];  // that reach `low`
  for (uint round = 1u; round <= kRounds && blocks > kFewBlocks && high - low > 1u; ++round) {
    const uint middle = low + (high - low) / 2u;
    count = 0u;
    [[unroll]] for (uint i = 0u; i < kBlocksOfLane; ++i) {
      count += mine[i] >= middle ? 1u : 0u;
    }
    atomicAdd(reached[round], count);
    barrier();
    if (reached[round] >= kTopCapacity) {
      low = middle;
      blocks = reached[round];
    } else {
      high = middle;
    }
  }

  [[unroll]] for (uint i = 0u; i < kBlocksOfLane; ++i) {
    if (mine[i] >= low) {
      const uint at = atomicAdd(n_chosen, 1u);
      if (at < kRoom) {
        chosen[at] = lane + i * kLanes;
      }
    }
  }
  barrier();
  const uint of_block = (push.n_vocab + push.blocks - 1u) / push.blocks;
  const uint candidates = min(n_chosen, kRoom) * of_block;
  for (uint i = lane; i < candidates; i += kLanes) {
    const uint id = chosen[i / of_block] + i % of_block * push.blocks;
    const uint key = id < push.n_vocab ? keyOf(logits[row + id]) : 0u;
    if (key >= low) {
      const uint at = atomicAdd(n_found, 1u);
      if (at < kRoom) {
        found_key[at] = key;
        found_id[at] = id;
      }
    }
  }
  barrier();

  const bool fit = n_chosen <= kRoom && n_found <= kRoom;
  // Keys are read again: this loop is not unrolled, and a lane's own would go to memory.
  for (uint block = lane; !fit && block < push.blocks; block += kLanes) {
    if (keys[output_index * push.blocks + block] == highest) {
      for (uint id = block; id < push.n_vocab; id += push.blocks) {
        if (keyOf(logits[row + id]) == highest) {
          atomicMin(best_id, id);
        }
      }
    }
  }
  barrier();
  if (fit) {
    for (uint i = lane; i < n_found; i += kLanes) {
      const uint key = found_key[i];
      const uint id = found_id[i];
      uint rank = 0u;
      for (uint j = 0u; j < n_found; ++j) {
        const uint other = found_key[j];
        rank += other > key || (other == key && found_id[j] < id) ? 1u : 0u;
      }
      if (rank < kTopCapacity) {
        tops[place].best[rank] = TopToken(uintBitsToFloat(logits[row + id]), id);
      }
    }
  }
  if (lane == 0u) {
    tops[place].count = fit ? min(n_found, kTopCapacity) : 1u;
    tops[place].all = fit && low == 1u && n_found <= kTopCapacity ? 1u : 0u;
    if (!fit) {
      tops[place].best[0] = TopToken(uintBitsToFloat(logits[row + best_id]), best_id);
    } else if (n_found == 0u) {
      tops[place].best[0] = TopToken(0.0, 0u);
    }
  }
}
