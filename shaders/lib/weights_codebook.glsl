// Units of the types whose values' sizes are in a codebook (shared/layout.h has the packing). A workgroup copies the
// codebook into shared memory, where lanes may read what they like at once.
const uint kBookWords = kType == kTypeIq2S                             ? 512u
                        : kType == kTypeIq2Xs || kType == kTypeIq3S    ? 256u
                                                                       : 128u;
const bool kHasAllSigns = kType == kTypeIq2S || kType == kTypeIq3S;

layout(std140, set = 0, binding = kCodebookBinding) uniform Codebook {
  uvec4 book[kBookWords / 4u];  // two entries to a word
};

shared uint codebook[kBookWords];

// By every lane of a workgroup before the first unit is loaded.
void prepareWeights(uint lane, uint lanes) {
  if (kIsIq2 || kIsIq3) {
    for (uint i = lane; i < kBookWords; i += lanes) {
      codebook[i] = book[i / 4u][i & 3u];
    }
    barrier();
  }
}

uint entryOf(uint index) { return (codebook[index / 2u] >> (16u * (index & 1u))) & 0xffffu; }

uint signsAt(WeightRow row, uint unit) {
  return sideOf(row, (unit / 8u + 1u) * kBlockWords - 8u + (unit & 7u));
}

// What a sign word has in place of every eighth sign, and the word with those: each is the sum of the seven before.
uint insteadOfSigns(uint word) {
  return (word >> 25 & 1u) | (word >> 26 & 2u) | (word >> 27 & 4u) | (word >> 28 & 8u);
}
uint evenSigns(uint word) {
  const uint known = word & 0x55ffffffu;
  uint sums = known ^ (known >> 16);
  sums ^= sums >> 8;
  sums ^= sums >> 1;
  return known | ((sums & 0x55u) << 25);
}
uint allSigns(uint word) {
  if (kHasAllSigns) {
    return word;
  }
  return evenSigns(word);
}

// d (2 scale + 1) and what the type divides by.
vec2 codebookScale(WeightRow row, uint unit) {
  const uint at = unit / 8u * kBlockWords;
  const float d = lowHalf(sideOf(row, at));
  if (kType == kTypeIq2Xxs || kType == kTypeIq3Xxs) {
    const float part = kType == kTypeIq2Xxs ? 0.125 : 0.25;
    return vec2(d * part * float(int(2u * insteadOfSigns(signsAt(row, unit)) + 1u)), 0.0);
  }
  if (kType == kTypeIq3S) {
    const uint scale = sideOf(row, at + 1u) >> (4u * (unit & 7u)) & 15u;
    return vec2(d * float(int(2u * scale + 1u)), 0.0);
  }
  const uint both = byteAt(sideOf(row, at + 1u + (unit & 7u) / 4u), unit & 3u);
  return d * 0.125 * vec2(ivec2(2u * uvec2(both & 15u, both >> 4) + 1u));
}

// The signs of values 4f .. 4f + 3.
vec4 withSigns(vec4 sizes, uint signs, uint f) {
  const uvec4 bits = uvec4(signs << (31u - f), signs << (23u - f), signs << (15u - f), signs << (7u - f));
  return uintBitsToFloat(floatBitsToUint(sizes) | (bits & 0x80000000u));
}

// IQ2: eight values an entry.
void loadEights(WeightRow row, uint unit, out vec4 v[kUnitVectors]) {
  const uint at = unit / 8u * kBlockWords;
  const uint word = signsAt(row, unit);
  const uint signs = allSigns(word);
  const uint low = sideOf(row, at + (kType == kTypeIq2Xxs ? 1u : 3u) + (unit & 7u));
  uint high = 0u;
  if (kType == kTypeIq2S) {
    high = byteAt(sideOf(row, at + 11u + (unit & 7u) / 4u), unit & 3u);
  }
  [[unroll]] for (uint l = 0u; l < 4u; ++l) {
    uint index = byteAt(low, l);
    if (kType == kTypeIq2Xs) {
      index |= (word >> (17u + 2u * l)) & 0x100u;
    } else if (kType == kTypeIq2S) {
      index |= (high << (8u - 2u * l)) & 0x300u;
    }
    const uint entry = entryOf(index);
    // 8, 25, 43
    const ivec4 first = ivec4(uvec4(entry, entry >> 2, entry >> 4, entry >> 6) & 3u);
    const ivec4 last = ivec4(uvec4(entry >> 8, entry >> 10, entry >> 12, entry >> 14) & 3u);
    v[2u * l] = withSigns(vec4(8 + 17 * first + (first >> 1)), signs, 2u * l);
    v[2u * l + 1u] = withSigns(vec4(8 + 17 * last + (last >> 1)), signs, 2u * l + 1u);
  }
}

// IQ3: four values an entry.
void loadFours(WeightRow row, uint unit, out vec4 v[kUnitVectors]) {
  const uint at = unit / 8u * kBlockWords;
  const uint signs = allSigns(signsAt(row, unit));
  const uint first_word = at + (kType == kTypeIq3Xxs ? 1u : 2u) + (unit & 7u) * 2u;
  uint high = 0u;
  if (kType == kTypeIq3S) {
    high = byteAt(sideOf(row, at + 18u + (unit & 7u) / 4u), unit & 3u);
  }
  const uvec2 low = uvec2(sideOf(row, first_word), sideOf(row, first_word + 1u));
  [[unroll]] for (uint f = 0u; f < kUnitVectors; ++f) {
    uint index = byteAt(low[f / 4u], f % 4u);
    if (kType == kTypeIq3S) {
      index |= (high << (8u - f)) & 0x100u;
    }
    const uint entry = entryOf(index);
    const ivec4 q = ivec4(uvec4(entry, entry >> 3, entry >> 6, entry >> 9) & 7u);
    ivec4 sizes = 2 * q + 1;
    if (kType == kTypeIq3Xxs) {
      sizes = 4 + 8 * q + ((q + 1) >> 3) * 2;  // 4, 12, ... 52, 62
    }
    v[f] = withSigns(vec4(sizes), signs, f);
  }
}
