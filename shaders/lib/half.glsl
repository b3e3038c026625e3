// IEEE 754 half floats in integer arithmetic, so that every device agrees to the bit. (What
// packHalf2x16 rounds to and whether unpackHalf2x16 keeps subnormals is the device's choice.)

// `half_bits` in the low 16 bits, finite. Subnormals take a detour over 2^-14: as floats in their own
// right they might be flushed to zero on the way.
float exactHalf(uint half_bits) {
  const uint magnitude = (half_bits & 0x7fffu) << 13;
  const float value = magnitude < (1u << 23)
                          ? uintBitsToFloat(magnitude + (113u << 23)) - 6.103515625e-5
                          : uintBitsToFloat(magnitude + (112u << 23));
  return (half_bits & 0x8000u) != 0u ? -value : value;
}

// Round to nearest, ties to even, as runtime/base/half.h.
uint toHalfBits(float value) {
  const uint bits = floatBitsToUint(value);
  const uint sign = (bits >> 16) & 0x8000u;
  const uint magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return sign | 0x7e00u;
  }
  if (magnitude >= 0x477ff000u) {
    return sign | 0x7c00u;
  }
  if (magnitude >= 0x38800000u) {
    return sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13);
  }
  // Subnormal half: the mantissa in steps of 2^-24.
  const uint shift = 126u - (magnitude >> 23);
  if (shift > 24u) {
    return sign;
  }
  const uint mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  const uint odd = (mantissa >> shift) & 1u;
  return sign | ((mantissa + (1u << (shift - 1u)) - 1u + odd) >> shift);
}

// Powers of two: what brings values whose largest magnitude is `most` to 2^top .. 2^(top + 1), and what undoes it.
// Values that are next to nothing become zero.
vec2 halfScales(float most, uint top) {
  const uint exponent = max(floatBitsToUint(most) >> 23, top + 1u);  // as floats have it
  return uintBitsToFloat(uvec2(254u + top - exponent, exponent - top) << 23);
}

uint packHalves(vec2 values) {
  return toHalfBits(values.x) | (toHalfBits(values.y) << 16);
}

// int8 codes of values that share an f16 scale (docs/decisions/014-cache-formats.md).

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
