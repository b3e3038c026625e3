// Bindings 3 and 4 of attention (LATENT: 3 alone): stored keys and values, eight neighbouring values (an octet) at a
// time: 4, 2 or 1 words. Needs kLaneOctets, ORIEL_KV_HEADS, push and step.glsl.
#if defined(LATENT)
#define ORIEL_VALUE_BINDING 3
#else
#define ORIEL_VALUE_BINDING 4
#endif
layout(set = 0, binding = 6, rgba32ui) readonly uniform uimageBuffer key_quad_texels;
layout(set = 0, binding = 7, r32ui) readonly uniform uimageBuffer key_texels;
layout(set = 0, binding = 8, rgba32ui) readonly uniform uimageBuffer value_quad_texels;
layout(set = 0, binding = 9, r32ui) readonly uniform uimageBuffer value_texels;
layout(std430, set = 0, binding = 3) readonly buffer Keys { uint k_words[]; };
layout(std430, set = 0, binding = 3) readonly buffer KeyPairs { uvec2 k_pairs[]; };
layout(std430, set = 0, binding = 3) readonly buffer KeyQuads { uvec4 k_quads[]; };
layout(std430, set = 0, binding = ORIEL_VALUE_BINDING) readonly buffer Values { uint v_words[]; };
layout(std430, set = 0, binding = ORIEL_VALUE_BINDING) readonly buffer ValuePairs { uvec2 v_pairs[]; };
layout(std430, set = 0, binding = ORIEL_VALUE_BINDING) readonly buffer ValueQuads { uvec4 v_quads[]; };
uint keyWord(uint at) {
  if (kTexels) {
    return imageLoad(key_texels, int(at)).x;
  }
  return k_words[at];
}
uvec4 keyQuad(uint at) {
  if (kTexels) {
    return imageLoad(key_quad_texels, int(at));
  }
  return k_quads[at];
}
uint valueWord(uint at) {
  if (kTexels) {
    return imageLoad(value_texels, int(at)).x;
  }
  return v_words[at];
}
uvec4 valueQuad(uint at) {
  if (kTexels) {
    return imageLoad(value_quad_texels, int(at));
  }
  return v_quads[at];
}
const uint kOctets = (kHeadDim + 7u) / 8u;
// Vectors begin on whole octets, so that one load gets one. Else words are read one by one.
const bool kWholeOctets = kHeadDim % 8u == 0u;
// Lanes begin on whole quads of every format, so that octets of a quad share one load of texels.
const bool kWholeQuads = kHeadDim % 32u + kLaneOctets % 4u == 0u;

// What is loaded is the level of the code divided by a power of two, which saves an operation or two a value.
const float kInt8Unit = 1.0 / 16777216.0;
const float kInt4Unit = 1.0 / 128.0;
float unitOf(const uint format) { return format == kKvInt8 ? kInt8Unit : kInt4Unit; }

vec4 int8Vector(uint word) {
  return vec4(ivec4(word << 24, (word << 16) & 0xff000000u, (word << 8) & 0xff000000u,
                    word & 0xff000000u));
}
void int8Octet(uvec2 words, out vec4 a, out vec4 b) {
  a = int8Vector(words.x);
  b = int8Vector(words.y);
}
vec4 int4Vector(uint codes) {
  const vec4 t = vec4(ivec4(uvec4(codes, codes >> 4, codes >> 8, codes >> 12) & 15u)) - 7.875;
  return t * (t * t + 128.0);  // int4Value, 128 times
}
void int4Octet(uint word, out vec4 a, out vec4 b) {
  a = int4Vector(word);
  b = int4Vector(word >> 16);
}
void halfOctet(uvec4 words, out vec4 a, out vec4 b) {
  a = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
  b = vec4(unpackHalf2x16(words.z), unpackHalf2x16(words.w));
}

// One word of a vector; zero past its end.
#define ORIEL_WORD(word_of, at, word, words) ((word) < (words) ? word_of((at) + (word)) : 0u)
// Four words of a vector in f16.
#define ORIEL_HALVES(word_of, quad_of, at, octet)                               \
  (kWholeOctets ? quad_of((at) / 4u + (octet))                                  \
                : uvec4(ORIEL_WORD(word_of, at, 4u * (octet), kHalfWords),      \
                        ORIEL_WORD(word_of, at, 4u * (octet) + 1u, kHalfWords), \
                        ORIEL_WORD(word_of, at, 4u * (octet) + 2u, kHalfWords), \
                        ORIEL_WORD(word_of, at, 4u * (octet) + 3u, kHalfWords)))
// Two words in int8, one in int4; `o` is the octet counted from the lane's first.
#define ORIEL_WORD_PAIR(word_of, at, octet)                        \
  uvec2(ORIEL_WORD(word_of, at, 2u * (octet), kInt8Words),         \
        ORIEL_WORD(word_of, at, 2u * (octet) + 1u, kInt8Words))
uvec2 pairOf(uvec4 quad, uint o) { return (o & 1u) == 0u ? quad.xy : quad.zw; }
uvec2 keyPair(uint at, uint octet, uint o) {
  if (kTexels) {
    if (kWholeQuads) {
      return pairOf(keyQuad(at / 4u + octet / 2u), o);
    }
  } else if (kWholeOctets) {
    return k_pairs[at / 2u + octet];
  }
  return ORIEL_WORD_PAIR(keyWord, at, octet);
}
uvec2 valuePair(uint at, uint octet, uint o) {
  if (kTexels) {
    if (kWholeQuads) {
      return pairOf(valueQuad(at / 4u + octet / 2u), o);
    }
  } else if (kWholeOctets) {
    return v_pairs[at / 2u + octet];
  }
  return ORIEL_WORD_PAIR(valueWord, at, octet);
}
uint keyNibbles(uint at, uint octet, uint o) {
  if (kTexels) {
    if (kWholeQuads) {
      return keyQuad(at / 4u + octet / 4u)[o & 3u];
    }
  }
  return keyWord(at + octet);
}
uint valueNibbles(uint at, uint octet, uint o) {
  if (kTexels) {
    if (kWholeQuads) {
      return valueQuad(at / 4u + octet / 4u)[o & 3u];
    }
  }
  return valueWord(at + octet);
}

// Octet `octet` of the vector whose words begin at `at`, still to be multiplied by its group's
// scale; `o`: the same counted from the lane's first.
void keyOctet(const bool sink, uint at, uint octet, uint o, out vec4 a, out vec4 b) {
  if (kKeys == kKvInt8) {
    if (!sink) {
      int8Octet(keyPair(at, octet, o), a, b);
      return;
    }
  } else if (kKeys == kKvInt4) {
    if (!sink) {
      int4Octet(keyNibbles(at, octet, o), a, b);
      return;
    }
  }
  halfOctet(ORIEL_HALVES(keyWord, keyQuad, at, octet), a, b);
}
void valueOctet(const bool sink, uint at, uint octet, uint o, out vec4 a, out vec4 b) {
  if (kValues == kKvInt8) {
    if (!sink) {
      int8Octet(valuePair(at, octet, o), a, b);
      return;
    }
  } else if (kValues == kKvInt4) {
    if (!sink) {
      int4Octet(valueNibbles(at, octet, o), a, b);
      return;
    }
  }
  halfOctet(ORIEL_HALVES(valueWord, valueQuad, at, octet), a, b);
}

// Where a KV head of a session lies on one side: words of its sinks, of its ring, and its first
// scale.
struct Side {
  uint sink_word;
  uint ring_word;
  uint scales_word;
  uint first_scale;
};
Side sideOf(View view, uint kv_head, uint words) {
  const uint sink = view.first_sink * ORIEL_KV_HEADS + kv_head * push.sinks;
  const uint first = view.first * ORIEL_KV_HEADS + kv_head * view.ring;
  const uint rings_word = ORIEL_KV_HEADS * push.all_sinks * kHalfWords;
  return Side(sink * kHalfWords, rings_word + first * words,
              rings_word + ORIEL_KV_HEADS * view.all_ring * words, first * kGroups);
}

// The f16 scales of a lane's two groups from octet `octet` of a ring slot on, packed as they are
// stored; with an odd number of groups to a vector just one, in the lower half.
#define ORIEL_SCALES(side, words, slot, octet) \
  scalesFrom(words(side.scales_word + scaleIndex(side, slot, octet) / 2u), \
             scaleIndex(side, slot, octet))
const uint kGroupOctets = kKvGroup / 8u;
const uint kScalesAtOnce = kGroups % 2u + kLaneOctets % (2u * kGroupOctets) == 0u ? 2u : 1u;
uint scaleIndex(Side side, uint slot, uint octet) {
  return side.first_scale + slot * kGroups + octet / kGroupOctets;
}
uint scalesFrom(uint word, uint index) {
  return kScalesAtOnce == 2u ? word : word >> (16u * (index & 1u));
}
float scaleOf(uint scales, uint o) {
  return exactHalf((o / kGroupOctets) % kScalesAtOnce == 1u ? scales >> 16 : scales & 0xffffu);
}
uint wordOf(Side side, const bool sink, uint slot, uint words) {
  return sink ? side.sink_word + slot * kHalfWords : side.ring_word + slot * words;
}
