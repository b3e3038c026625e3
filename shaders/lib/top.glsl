// A logit's key, from its bits: see TopPush.
uint topKey(uint bits) {
  const uint sign = 0x80000000u;
  const uint infinity = 0x7f800000u;
  if (bits >= sign) {
    return bits == sign ? sign : bits - sign >= infinity ? 0u : ~bits;
  }
  return bits > infinity ? 0u : bits | sign;
}

// Where the last output's logits begin. Needs lib/step.glsl.
uint lastLogits() { return (max(step_.header.n_outputs, 1u) - 1u) * push.n_vocab; }
