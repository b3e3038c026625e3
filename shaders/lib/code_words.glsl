// Words of a stored vector, in every format. Needs values[], scales[], kHeadDim, lib/kv.glsl, lib/int8.glsl,
// lib/quantise.glsl.
uint halfWord(uint word) { return packHalves(vec2(values[2u * word], values[2u * word + 1u])); }

uint int8Word(uint word) {
  uint packed = 0u;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    const uint at = 4u * word + i;
    if (at < kHeadDim) {
      packed |= int8Code(values[at], int8Inverse(scales[at / kKvGroup])) << (8u * i);
    }
  }
  return packed;
}

uint int4Word(uint word) {
  uint packed = 0u;
  [[unroll]] for (uint i = 0u; i < 8u; ++i) {
    const uint at = 8u * word + i;
    const uint code = at < kHeadDim ? int4Code(values[at], scales[at / kKvGroup]) : 0u;
    packed |= code << (4u * i);
  }
  return packed;
}

uint codeWord(const uint format, uint word) {
  if (format == kKvInt8) {
    return int8Word(word);
  }
  if (format == kKvInt4) {
    return int4Word(word);
  }
  return halfWord(word);
}
