// A unit of weights as halves, and products of units in half precision with what stage_half leaves for them. Halves
// never overflow: weights are at most 128, inputs 2^(kHalvesTop + 1) = 16, and no more than 16 products are added up
// before the sum goes on as a float.
#include "lib/weights_packed.glsl"

// Packed weights less this are as far from zero to either side as they can be; quants whose minimum is given apart
// have to be moved there. Those of Q8_0 once the sign bit is turned over.
const int kCentre = kType == kTypeQ8_0                         ? 128
                    : kType == kTypeQ4_1 || kType == kTypeQ4_K ? 8
                    : kType == kTypeQ5_1 || kType == kTypeQ5_K ? 16
                    : kType == kTypeQ2_K                       ? 2
                                                               : kPackedOffset;

// Every four values in the order 0, 2, 1, 3: so bytes fall apart into pairs of halves.
void loadHalves(WeightRow row, uint unit, out f16vec4 v[kUnitVectors], out UnitScale s) {
  s = unitScale(row, unit);
  if (kIsFloat || kHasTable) {
    vec4 values[kUnitVectors];
    loadUnit(row, unit, values);
    float up = 1.0;
    if (kIsFloat) {
      vec4 most = vec4(0.0);
      [[unroll]] for (uint i = 0u; i < kUnitVectors; ++i) {
        most = max(most, abs(values[i]));
      }
      const vec2 scales = halfScales(max(max(most.x, most.y), max(most.z, most.w)), 6u);
      up = scales.x;
      s.scale.x = scales.y;
    }
    [[unroll]] for (uint i = 0u; i < kUnitVectors; ++i) {
      v[i] = f16vec4(values[i].xzyw * up);
    }
    return;
  }
  uvec4 bytes[2];
  loadPacked(row, unit, bytes[0], bytes[1]);
  if (kHasMinimum) {
    s.minimum -= float(kCentre) * s.scale;
  }
  [[unroll]] for (uint i = 0u; i < kUnitVectors; ++i) {
    uint word = bytes[i / 4u][i % 4u];
    if (kType == kTypeQ8_0) {
      word ^= 0x80808080u;
    }
    // A byte in the low bits of the half 1024 adds to it.
    const uvec2 pairs = (uvec2(word, word >> 8) & 0x00ff00ffu) | 0x64006400u;
    v[i] = f16vec4(unpackFloat2x16(pairs.x), unpackFloat2x16(pairs.y)) - float16_t(1024 + kCentre);
  }
}

struct StagedUnit {
  f16vec4 values[kUnitVectors];
  vec2 totals;
};

// `row`: the first quad of a token's, of `units` units.
StagedUnit stagedUnit(uint row, uint units, uint unit) {
  StagedUnit x;
  [[unroll]] for (uint i = 0u; i < kUnit / 8u; ++i) {
    const uvec4 w = staged[row + unit * (kUnit / 8u) + i];
    x.values[2u * i] = f16vec4(unpackFloat2x16(w.x), unpackFloat2x16(w.y));
    x.values[2u * i + 1u] = f16vec4(unpackFloat2x16(w.z), unpackFloat2x16(w.w));
  }
  if (kHasMinimum) {
    x.totals = uintBitsToFloat(staged[row + units * (kUnit / 8u) + unit].yz);
  }
  return x;
}

const uint kRun = kHalfScales ? 4u : 8u;  // of four values: what has one scale

// Four sums of kRun products each, two of which are joined before they go on as floats.
float scaledDot(f16vec4 v[kUnitVectors], UnitScale s, StagedUnit x) {
  vec2 dots = vec2(0.0);
  [[unroll]] for (uint h = 0u; h < kUnitVectors / kRun; ++h) {
    f16vec4 run = v[h * kRun] * x.values[h * kRun];
    [[unroll]] for (uint i = 1u; i < kRun; ++i) {
      run += v[h * kRun + i] * x.values[h * kRun + i];
    }
    const vec2 two = vec2(run.xy + run.zw);
    dots[h] = two.x + two.y;
  }
  float sum = s.scale.x * dots.x;
  if (kHalfScales) {
    sum += s.scale.y * dots.y;
  }
  if (kHasMinimum && kHalfScales) {
    sum -= s.minimum.x * x.totals.x + s.minimum.y * x.totals.y;
  } else if (kHasMinimum) {
    sum -= s.minimum.x * (x.totals.x + x.totals.y);
  }
  return sum;
}
