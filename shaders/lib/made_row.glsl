// The input of a product, made by each of its workgroups: what a norm, an activation or a merge before it would write,
// to the bit. A row comes in spans, which stay in shared memory. Needs kLanes, step.glsl, form.glsl.
#include "shared/made_row.h"
#include "lib/activation.glsl"

const bool kMakes = kFormSecond != 0u;
layout(constant_id = 4) const uint kMaker = kMakeCopied;
layout(constant_id = 5) const uint kSpanLength = kSpanUnits;  // units that `span` holds: kLeastSpan to kSpanUnits

const uint kNormLanes = 128u;  // rms_norm.comp adds up this many sums

shared uvec4 span[kSpanLength * kSpanPitch];  // floats, or staged units in their place

layout(std430, set = 0, binding = 3) readonly buffer MadeFrom { vec4 made_from[]; };
layout(std430, set = 0, binding = 3) readonly buffer Singles { float partials[]; };
layout(std430, set = 0, binding = 4) readonly buffer MadeWith { vec4 norm_weight[]; };

// The push constants of the op before, as words.
uint makerWord(uint word) { return maker[word / 4u][word % 4u]; }
float makerFloat(uint word) { return uintBitsToFloat(makerWord(word)); }
const uint kColsWord = 0u;       // of norms and activations
const uint kStrideWord = 1u;     // likewise
const uint kEpsWord = 4u;        // of RmsNormPush
const uint kNormScaleWord = 9u;
const uint kUpWord = 3u;         // of GatedActivationPush
const uint kActivationWord = 5u;
const uint kScaleWord = 8u;

// The factor of a row's norm.
float normFactor(uint t, uint lane) {
  const uint cols = makerWord(kColsWord);
  const uint at = t * (makerWord(kStrideWord) / 4u);
  for (uint i = lane; i < kNormLanes; i += kLanes) {
    float squares = 0.0;
    for (uint c = i; c < cols; c += 4u * kNormLanes) {
      float x[4];  // in flight together
      [[unroll]] for (uint k = 0u; k < 4u; ++k) {
        const uint col = c + k * kNormLanes;
        x[k] = col < cols ? made_from[at + col / 4u][col % 4u] : 0.0;
      }
      [[unroll]] for (uint k = 0u; k < 4u; ++k) {
        squares += x[k] * x[k];
      }
    }
    span[i].x = floatBitsToUint(squares);
  }
  barrier();
  for (uint width = kNormLanes / 2u; width > 0u; width /= 2u) {
    for (uint i = lane; i < width; i += kLanes) {
      span[i].x = floatBitsToUint(uintBitsToFloat(span[i].x) + uintBitsToFloat(span[i + width].x));
    }
    barrier();
  }
  return 1.0 / sqrt(uintBitsToFloat(span[0].x) / float(cols) + makerFloat(kEpsWord)) * makerFloat(kNormScaleWord);
}

float rowFactor(uint t, uint lane) { return kMaker == kMakeNormed ? normFactor(t, lane) : 1.0; }

// Four values of attention_merge.comp.
vec4 mergedQuad(uint t, uint c) {
  const AttentionMergePush merge = AttentionMergePush(makerWord(0u), makerWord(1u), makerWord(2u), makerWord(3u),
                                                      makerWord(4u), makerWord(5u));
  if (c >= merge.n_heads * merge.head_dim) {
    return vec4(0.0);
  }
  const View view = viewOf(t, merge.view);
  const uint seen = view.n_sinks + view.count;
  const uint splits = clamp((seen + merge.split_slots - 1u) / merge.split_slots, 1u, merge.splits);
  const uint words = merge.head_dim + kPartialExtra;
  const uint first = (t * merge.n_heads + c / merge.head_dim) * merge.splits * words;
  float maximum = partials[first + merge.head_dim];
  for (uint s = 1u; s < splits; s += 4u) {  // loads in flight together
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      maximum = max(maximum, partials[first + min(s + i, splits - 1u) * words + merge.head_dim]);
    }
  }
  vec4 values = vec4(0.0);
  float sum = 0.0;
  for (uint s = 0u; s < splits; s += 4u) {
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      const uint end = first + min(s + i, splits - 1u) * words + merge.head_dim;
      const uint at = end - merge.head_dim + c % merge.head_dim;
      const float weight = s + i < splits ? exp(partials[end] - maximum) : 0.0;
      values += weight * vec4(partials[at], partials[at + 1u], partials[at + 2u], partials[at + 3u]);
      sum += weight * partials[end + 1u];
    }
  }
  return sum > 0.0 ? values / sum : vec4(0.0);
}

// Four values of the row from column c on.
vec4 madeQuad(uint t, uint c, float factor) {
  if (kMaker == kMakeMerged) {
    return mergedQuad(t, c);
  }
  if (kMaker == kMakeCopied) {
    return made_from[(t * push.in_stride + c) / 4u];
  }
  if (c >= makerWord(kColsWord)) {
    return vec4(0.0);
  }
  const vec4 x = made_from[(t * makerWord(kStrideWord) + c) / 4u];
  if (kMaker == kMakeNormed) {
    return x * factor * norm_weight[c / 4u];
  }
  const vec4 up = made_from[(t * makerWord(kStrideWord) + makerWord(kUpWord) + c) / 4u];
  return (makerWord(kActivationWord) == kGelu ? ORIEL_GELU(x) : ORIEL_SILU(x)) * up * makerFloat(kScaleWord);
}

// Fills `span` with the units from `first` on.
void makeSpan(uint t, uint first, float factor, uint lane) {
  barrier();  // the one before was read
  for (uint i = lane; i < kSpanLength * (kUnit / 4u); i += kLanes) {
    const uint unit = i / (kUnit / 4u);
    if (first + unit < push.units) {
      span[unit * kSpanPitch + i % (kUnit / 4u)] = floatBitsToUint(madeQuad(t, first * kUnit + 4u * i, factor));
    }
  }
  barrier();
}
