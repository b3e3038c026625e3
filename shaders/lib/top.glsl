#include "lib/key.glsl"

// Where the last output's logits begin. Needs lib/step.glsl.
uint lastLogits() { return (max(step_.header.n_outputs, 1u) - 1u) * push.n_vocab; }
