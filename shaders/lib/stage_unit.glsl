// The input of a product in 16 bits, a unit at a time: values divided by kStagedMost-th of the largest, as
// kStagedUnitWords describes.
const uint kVectors = kUnit / 4u;
// Units this small are zero: their reciprocal would not be finite.
const float kLeast = 1e-30;

void stageUnit(vec4 v[kVectors], out uvec4 unit[kStagedUnitWords / 4u]) {
  vec4 most = vec4(0.0);
  [[unroll]] for (uint i = 0u; i < kVectors; ++i) {
    most = max(most, abs(v[i]));
  }
  const float largest = max(max(most.x, most.y), max(most.z, most.w));
  const float inverse = largest > kLeast ? float(kStagedMost) / largest : 0.0;
  const int limit = int(kStagedMost);
  uint high[kVectors];
  uint low[kVectors];
  ivec4 sums[2] = ivec4[2](ivec4(0), ivec4(0));
  [[unroll]] for (uint i = 0u; i < kVectors; ++i) {
    const ivec4 x = clamp(ivec4(roundEven(v[i] * inverse)), -limit, limit);
    const ivec4 h = (x + 128) >> 8;
    const uvec4 high_bytes = uvec4(h) & 0xffu;
    const uvec4 low_bytes = uvec4(x) & 0xffu;  // x - 256 h, as a byte
    high[i] = high_bytes.x | high_bytes.y << 8 | high_bytes.z << 16 | high_bytes.w << 24;
    low[i] = low_bytes.x | low_bytes.y << 8 | low_bytes.z << 16 | low_bytes.w << 24;
    sums[i / 4u] += x;
  }
  unit[0] = uvec4(high[0], high[1], high[2], high[3]);
  unit[1] = uvec4(high[4], high[5], high[6], high[7]);
  unit[2] = uvec4(low[0], low[1], low[2], low[3]);
  unit[3] = uvec4(low[4], low[5], low[6], low[7]);
  const float scale = largest > kLeast ? largest / float(kStagedMost) : 0.0;
  unit[4] = uvec4(floatBitsToUint(scale), sums[0].x + sums[0].y + sums[0].z + sums[0].w,
                          sums[1].x + sums[1].y + sums[1].z + sums[1].w, 0u);
}
