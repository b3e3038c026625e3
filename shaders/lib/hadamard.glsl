// The normalised Walsh-Hadamard matrix of the low-bit formats (runtime/kv/quantise.h). Needs values[] and kLanes.

// values[first .. first + count - 1], in place; blocks of the largest power of two that divides their number. Called by
// all lanes; what was written before needs a barrier.
void hadamard(uint lane, const uint first, const uint count) {
  const uint block = count & (~count + 1u);
  for (uint half_block = 1u; half_block < block; half_block *= 2u) {
    for (uint pair = lane; pair < count / 2u; pair += kLanes) {
      const uint at = first + pair / half_block * 2u * half_block + pair % half_block;
      const float a = values[at];
      const float b = values[at + half_block];
      values[at] = a + b;
      values[at + half_block] = a - b;
    }
    barrier();
  }
  const float scale = 1.0 / sqrt(float(block));
  for (uint i = lane; i < count; i += kLanes) {
    values[first + i] *= scale;
  }
  barrier();
}
