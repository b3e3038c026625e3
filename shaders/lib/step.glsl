// Binding 1 of every kernel: what changes from step to step (runtime/plan/plan.h has the same arithmetic).
layout(std430, set = 0, binding = 1) readonly buffer Step {
  StepHeader header;
  uint words[];  // of tokens and their views, then rotations
} step_;

uint tokenWord(uint t) { return t * step_.header.token_words; }
uint tokenId(uint t) { return step_.words[tokenWord(t)]; }
uint tokenBase(uint t) { return step_.words[tokenWord(t) + 1u]; }
uint tokenPlace(uint t) { return step_.words[tokenWord(t) + 3u]; }
uint outputToken(uint i) { return step_.words[tokenWord(i) + 2u]; }
View viewOf(uint t, uint view) {
  const uint at = tokenWord(t) + kTokenStepWords + view * kViewWords;
  return View(step_.words[at], step_.words[at + 1u], step_.words[at + 2u], step_.words[at + 3u],
              step_.words[at + 4u], step_.words[at + 5u], step_.words[at + 6u],
              step_.words[at + 7u]);
}

// True if token t reads the state that the token before it writes.
bool followsInState(uint t, uint view) {
  if (t == 0u) {
    return false;
  }
  const View own = viewOf(t, view);
  const View before = viewOf(t - 1u, view);
  return own.count != 0u && own.first + own.begin == before.first + before.slot;
}

// A token's float: `first` is the word of the block where that of the first token is.
float stepFloat(uint t, uint first, uint stride) {
  return uintBitsToFloat(step_.words[first + t * stride - kStepHeaderWords]);
}

// Rows that a kernel works on which is told so.
uint rowsOf(uint of_outputs) {
  return of_outputs != 0u ? step_.header.n_outputs : step_.header.n_tokens;
}
