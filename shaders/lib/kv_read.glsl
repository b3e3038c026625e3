// Stored keys and values, eight neighbouring values (an octet) at a time: 4, 2 or 1 words. Needs
// k_words, k_pairs, k_quads and v_words, v_pairs, v_quads: the two cache sides as words, uvec2 and
// uvec4.
const uint kOctets = (kHeadDim + 7u) / 8u;
// Vectors begin on whole octets, so that one load gets one. Else words are read one by one.
const bool kWholeOctets = kHeadDim % 8u == 0u;

// What is loaded is the level of the code divided by a power of two (kKeyUnit, kValueUnit), which
// saves an operation or two a value.
const float kInt8Unit = 1.0 / 16777216.0;
const float kInt4Unit = 1.0 / 128.0;
#if defined(K_INT8)
const float kKeyUnit = kInt8Unit;
#elif defined(K_INT4)
const float kKeyUnit = kInt4Unit;
#endif
#if defined(V_INT8)
const float kValueUnit = kInt8Unit;
#elif defined(V_INT4)
const float kValueUnit = kInt4Unit;
#endif

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
#define ORIEL_WORD(side, at, word, words) ((word) < (words) ? side[(at) + (word)] : 0u)
// Four words of a vector in f16.
#define ORIEL_HALVES(side, quads, at, octet)                               \
  (kWholeOctets ? quads[(at) / 4u + (octet)]                               \
                : uvec4(ORIEL_WORD(side, at, 4u * (octet), kHalfWords),    \
                        ORIEL_WORD(side, at, 4u * (octet) + 1u, kHalfWords), \
                        ORIEL_WORD(side, at, 4u * (octet) + 2u, kHalfWords), \
                        ORIEL_WORD(side, at, 4u * (octet) + 3u, kHalfWords)))
#define ORIEL_BYTES(side, pairs, at, octet)                             \
  (kWholeOctets ? pairs[(at) / 2u + (octet)]                            \
                : uvec2(ORIEL_WORD(side, at, 2u * (octet), kInt8Words), \
                        ORIEL_WORD(side, at, 2u * (octet) + 1u, kInt8Words)))

// Octet `octet` of the vector whose words begin at `at`, still to be multiplied by its group's
// scale.
void keyOctet(const bool sink, uint at, uint octet, out vec4 a, out vec4 b) {
#if defined(K_INT8)
  if (!sink) {
    int8Octet(ORIEL_BYTES(k_words, k_pairs, at, octet), a, b);
    return;
  }
#elif defined(K_INT4)
  if (!sink) {
    int4Octet(k_words[at + octet], a, b);
    return;
  }
#endif
  halfOctet(ORIEL_HALVES(k_words, k_quads, at, octet), a, b);
}
void valueOctet(const bool sink, uint at, uint octet, out vec4 a, out vec4 b) {
#if defined(V_INT8)
  if (!sink) {
    int8Octet(ORIEL_BYTES(v_words, v_pairs, at, octet), a, b);
    return;
  }
#elif defined(V_INT4)
  if (!sink) {
    int4Octet(v_words[at + octet], a, b);
    return;
  }
#endif
  halfOctet(ORIEL_HALVES(v_words, v_quads, at, octet), a, b);
}
