#include "lib/key.glsl"

// The output whose best tokens are wanted: of all the i-th, else the last. Needs lib/step.glsl.
uint outputOf(uint i) {
  return push.all_outputs != 0u ? i : max(step_.header.n_outputs, 1u) - 1u;
}
bool isWanted(uint i) { return push.all_outputs == 0u || i < step_.header.n_outputs; }
