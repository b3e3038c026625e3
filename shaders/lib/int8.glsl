// int8 codes of values that share an f16 scale (docs/decisions/014-cache-formats.md). Needs lib/half.glsl.

// What four codes stand for, before the scale.
vec4 int8Values(uint word) {
  const int bytes = int(word);
  return vec4(ivec4(bytes << 24, bytes << 16, bytes << 8, bytes) >> 24);
}

uint int8ScaleBits(float most) {  // of a group whose largest magnitude is that
  precise float scale = most * (1.0 / 127.0);
  return toHalfBits(scale);
}

// What values are multiplied by to become codes.
float int8Inverse(uint scale_bits) {
  const float scale = exactHalf(scale_bits);
  return scale != 0.0 ? 1.0 / scale : 0.0;
}

uint int8Code(float value, float inverse) {
  return uint(int(roundEven(clamp(value * inverse, -127.0, 127.0)))) & 0xffu;
}
