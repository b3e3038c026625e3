#include "exec/reference_weights.h"

#include <cmath>

#include "base/half.h"
#include "plan/codebooks.h"
#include "plan/weight_layout.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kLanes = 8;  // partial sums of a dot product; lets compilers vectorise it
static_assert(kUnit % kLanes == 0, "a unit is whole steps of all lanes");

float sumLanes(const float (&lanes)[kLanes]) {
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

float lowHalf(uint32_t word) { return halfToFloat(static_cast<uint16_t>(word)); }
float highHalf(uint32_t word) { return halfToFloat(static_cast<uint16_t>(word >> 16)); }

/// One row of a group.
struct Row {
  const uint32_t* quads;
  const uint32_t* sides;

  uint32_t quant(uint32_t word) const { return quads[word / 4 * (4 * kGroupRows) + word % 4]; }
  uint32_t side(uint32_t word) const { return sides[word * kGroupRows]; }
};

// The scale of a unit within its pair's scales.
float pairScale(uint32_t pair, uint32_t unit) {
  return unit % 2 == 0 ? lowHalf(pair) : highHalf(pair);
}

// Byte i of the side words from `word` on.
uint32_t sideByte(const Row& row, uint32_t word, uint32_t i) {
  return row.side(word + i / 4) >> (8 * (i % 4)) & 0xff;
}

// Value i of a unit in a quad of nibbles, in 2-bit quads, in a high-bit word.
uint32_t nibble(const Row& row, uint32_t unit, uint32_t i) {
  return row.quant(4 * unit + i % 16 / 4) >> (8 * (i % 4) + i / 16 * 4) & 15;
}
uint32_t twoBits(uint32_t word, uint32_t i) { return word >> (8 * (i % 4) + i % 16 / 4 * 2) & 3; }
uint32_t highBit(uint32_t word, uint32_t i) { return word >> (8 * (i % 4) + i / 4) & 1; }

/// The values of IQ4 quants.
constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};

/// Twice the values of MXFP4 quants.
constexpr int8_t kMxfp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
/// The values of codes in the codebooks.
constexpr float kIq2Sizes[3] = {8, 25, 43};
constexpr float kIq3XxsSizes[8] = {4, 12, 20, 28, 36, 44, 52, 62};

// 2^(e - 128); the two smallest are subnormal.
float powerOfTwo(uint32_t e) { return bitsToFloat(e < 2 ? 1u << (21 + e) : (e - 1) << 23); }

// An unsigned float with 4 exponent and 3 mantissa bits. The largest code is not a number and gives 0.
float smallScale(uint32_t byte) {
  const uint32_t e = byte >> 3 & 15;
  const uint32_t m = byte & 7;
  const bool none = (byte & 0x7f) == 0x7f;
  return none ? 0
              : std::ldexp(static_cast<float>(e == 0 ? m : 8 + m),
                           static_cast<int>(e == 0 ? 1 : e) - 10);
}

// Code i of an entry of a codebook.
template <uint32_t kBits>
uint32_t codeOf(const uint32_t* book, uint32_t entry, uint32_t i) {
  return book[entry / 2] >> (16 * (entry % 2) + kBits * i) & ((1u << kBits) - 1);
}

// A sign word stores other data in place of every eighth sign. These signs follow from the parity of the other seven: 1
// if it is odd.
uint32_t insteadOfSigns(uint32_t word) {
  return (word >> 25 & 1) | (word >> 26 & 2) | (word >> 27 & 4) | (word >> 28 & 8);
}
uint32_t evenSigns(uint32_t word) {
  uint32_t signs = word & 0x55ffffffu;
  for (uint32_t l = 0; l < 4; ++l) {
    uint32_t odd = 0;
    for (uint32_t i = 8 * l; i < 8 * l + 7; ++i) {
      odd ^= highBit(signs, i);
    }
    signs |= odd << (25 + 2 * l);
  }
  return signs;
}

// Every product below is exact in float32, so fusing it with a sum changes nothing.
template <typename Quant>
void scaled(float scale, const Quant& quant, float (&out)[kUnit]) {
  for (uint32_t i = 0; i < kUnit; ++i) {
    out[i] = scale * static_cast<float>(static_cast<int32_t>(quant(i)));
  }
}

template <typename Quant>
void scaledPlus(float scale, float add, const Quant& quant, float (&out)[kUnit]) {
  for (uint32_t i = 0; i < kUnit; ++i) {
    out[i] = scale * static_cast<float>(static_cast<int32_t>(quant(i))) + add;
  }
}

float withSign(float size, uint32_t signs, uint32_t i) {
  return highBit(signs, i) != 0 ? -size : size;
}

// IQ2: `index` of eight values and `scale` of a half of the unit.
template <typename Index, typename Scale>
void eights(const uint32_t* book, float d, uint32_t signs, const Index& index, const Scale& scale,
            float (&out)[kUnit]) {
  for (uint32_t i = 0; i < kUnit; ++i) {
    const float size = kIq2Sizes[codeOf<2>(book, index(i / 8), i % 8)];
    out[i] = d * 0.125f * static_cast<float>(2 * scale(i / 16) + 1) * withSign(size, signs, i);
  }
}

void unpackIq2(WeightType type, const Row& row, uint32_t unit, float (&out)[kUnit]) {
  const uint32_t u = unit % 8;
  const uint32_t words = weightGeometry(type, 256).side;
  const uint32_t at = unit / 8 * words;
  const float d = lowHalf(row.side(at));
  const uint32_t signs = row.side(at + words - 8 + u);
  const auto scale16 = [&](uint32_t half) {
    return row.side(at + 1 + u / 4) >> (8 * (u % 4) + 4 * half) & 15;
  };
  const auto low = [&](uint32_t word, uint32_t l) { return sideByte(row, at + word + u, l); };
  switch (type) {
    case WeightType::kIq2Xxs:
      return eights(
          kIq2XxsGrid, d, evenSigns(signs), [&](uint32_t l) { return low(1, l); },
          [&](uint32_t) { return insteadOfSigns(signs); }, out);
    case WeightType::kIq2Xs:
      return eights(
          kIq2XsGrid, d, evenSigns(signs),
          [&](uint32_t l) { return low(3, l) | (insteadOfSigns(signs) >> l & 1) << 8; }, scale16,
          out);
    default:
      return eights(
          kIq2SGrid, d, signs,
          [&](uint32_t l) { return low(3, l) | (sideByte(row, at + 11, u) >> (2 * l) & 3) << 8; },
          scale16, out);
  }
}

void unpackIq3(WeightType type, const Row& row, uint32_t unit, float (&out)[kUnit]) {
  const uint32_t u = unit % 8;
  const uint32_t words = weightGeometry(type, 256).side;
  const uint32_t at = unit / 8 * words;
  const float d = lowHalf(row.side(at));
  const uint32_t signs = row.side(at + words - 8 + u);
  for (uint32_t i = 0; i < kUnit; ++i) {
    if (type == WeightType::kIq3Xxs) {
      const float size =
          kIq3XxsSizes[codeOf<3>(kIq3XxsGrid, sideByte(row, at + 1 + 2 * u, i / 4), i % 4)];
      out[i] = d * 0.25f * static_cast<float>(2 * insteadOfSigns(signs) + 1) *
               withSign(size, evenSigns(signs), i);
      continue;
    }
    const uint32_t high = sideByte(row, at + 18, u) >> (i / 4) & 1;
    const uint32_t index = sideByte(row, at + 2 + 2 * u, i / 4) | high << 8;
    const uint32_t scale = row.side(at + 1) >> (4 * u) & 15;
    const float size = static_cast<float>(2 * codeOf<3>(kIq3SGrid, index, i % 4) + 1);
    out[i] = d * static_cast<float>(2 * scale + 1) * withSign(size, signs, i);
  }
}

// Types with blocks of 256 values; `u` is the unit within its block.
void unpack256(WeightType type, const Row& row, uint32_t unit, uint32_t side_words,
               float (&out)[kUnit]) {
  const uint32_t u = unit % 8;
  const uint32_t at = unit / 8 * side_words;  // in the block's side words
  const float d = lowHalf(row.side(at));
  const float dmin = highHalf(row.side(at));
  const auto twoBitQuant = [&](uint32_t i) { return twoBits(row.quant(2 * unit + i / 16), i); };
  // Scales of the two halves of the unit, as signed bytes.
  const auto scale16 = [&](uint32_t i) {
    return static_cast<float>(static_cast<int8_t>(sideByte(row, at + 1, 2 * u + i / 16)));
  };
  switch (type) {
    case WeightType::kQ2_K:
      for (uint32_t i = 0; i < kUnit; ++i) {
        const uint32_t both = sideByte(row, at + 1, 2 * u + i / 16);
        out[i] = d * static_cast<float>(both & 15) * static_cast<float>(twoBitQuant(i)) -
                 dmin * static_cast<float>(both >> 4);
      }
      return;
    case WeightType::kQ3_K:
      for (uint32_t i = 0; i < kUnit; ++i) {
        const uint32_t q = twoBitQuant(i) + 4 * highBit(row.side(at + 5 + u), i);
        out[i] = d * scale16(i) * static_cast<float>(static_cast<int32_t>(q) - 4);
      }
      return;
    case WeightType::kQ6_K:
      for (uint32_t i = 0; i < kUnit; ++i) {
        const uint32_t q =
            nibble(row, unit, i) + 16 * twoBits(row.side(at + 5 + 2 * u + i / 16), i);
        out[i] = d * scale16(i) * static_cast<float>(static_cast<int32_t>(q) - 32);
      }
      return;
    case WeightType::kIq4Xs:
      return scaled(
          d * static_cast<float>(static_cast<int8_t>(sideByte(row, at + 1, u))),
          [&](uint32_t i) { return kIq4Values[nibble(row, unit, i)]; }, out);
    default: {  // Q4_K, Q5_K
      const uint32_t high = type == WeightType::kQ5_K ? row.side(at + 5 + u) : 0;
      return scaledPlus(
          d * static_cast<float>(sideByte(row, at + 1, u)),
          -dmin * static_cast<float>(sideByte(row, at + 3, u)),
          [&](uint32_t i) { return nibble(row, unit, i) + 16 * highBit(high, i); }, out);
    }
  }
}

}  // namespace

void WeightRows::unpack(uint32_t r, uint32_t unit, float (&out)[kUnit]) const {
  const uint32_t* group = words + static_cast<uint64_t>(r / kGroupRows) * group_words;
  const Row row = {group + 4 * (r % kGroupRows), group + side_word + r % kGroupRows};
  switch (type) {
    case WeightType::kF32:
      for (uint32_t i = 0; i < kUnit; ++i) {
        out[i] = bitsToFloat(row.quant(unit * kUnit + i));
      }
      return;
    case WeightType::kF16:
      for (uint32_t i = 0; i < kUnit; i += 2) {
        const uint32_t pair = row.quant((unit * kUnit + i) / 2);
        out[i] = lowHalf(pair);
        out[i + 1] = highHalf(pair);
      }
      return;
    case WeightType::kBf16:
      for (uint32_t i = 0; i < kUnit; i += 2) {
        const uint32_t pair = row.quant((unit * kUnit + i) / 2);
        out[i] = bitsToFloat(pair << 16);
        out[i + 1] = bitsToFloat(pair & 0xffff0000u);
      }
      return;
    case WeightType::kQ8_0:
      return scaled(
          pairScale(row.side(unit / 2), unit),
          [&](uint32_t i) {
            const uint32_t word = row.quant(8 * unit + i / 4);
            return static_cast<int8_t>(word >> (8 * (i % 4)) & 255);
          },
          out);
    case WeightType::kQ4_0:
      return scaled(
          pairScale(row.side(unit / 2), unit), [&](uint32_t i) { return nibble(row, unit, i) - 8; },
          out);
    case WeightType::kIq4Nl:
      return scaled(
          pairScale(row.side(unit / 2), unit),
          [&](uint32_t i) { return kIq4Values[nibble(row, unit, i)]; }, out);
    case WeightType::kQ5_0: {
      const uint32_t at = unit / 2 * 3;
      const uint32_t high = row.side(at + unit % 2);
      return scaled(
          pairScale(row.side(at + 2), unit),
          [&](uint32_t i) { return nibble(row, unit, i) + 16 * highBit(high, i) - 16; }, out);
    }
    case WeightType::kQ4_1:
      return scaledPlus(
          lowHalf(row.side(unit)), highHalf(row.side(unit)),
          [&](uint32_t i) { return nibble(row, unit, i); }, out);
    case WeightType::kQ5_1: {
      const uint32_t high = row.side(2 * unit);
      const uint32_t both = row.side(2 * unit + 1);
      return scaledPlus(
          lowHalf(both), highHalf(both),
          [&](uint32_t i) { return nibble(row, unit, i) + 16 * highBit(high, i); }, out);
    }
    case WeightType::kMxfp4:
      return scaled(
          powerOfTwo(sideByte(row, 0, unit)),
          [&](uint32_t i) { return kMxfp4Values[nibble(row, unit, i)]; }, out);
    case WeightType::kNvfp4:
      for (uint32_t i = 0; i < kUnit; ++i) {
        out[i] = smallScale(sideByte(row, 0, 2 * unit + i / 16)) * 0.5f *
                 static_cast<float>(kMxfp4Values[nibble(row, unit, i)]);
      }
      return;
    case WeightType::kQ1_0:
      return scaled(
          pairScale(row.side(unit / 8 * 9), unit / 4),
          [&](uint32_t i) { return 2 * highBit(row.side(unit / 8 * 9 + 1 + unit % 8), i) - 1; },
          out);
    case WeightType::kQ2_0:
    case WeightType::kTq2_0:
    case WeightType::kTq1_0:
      return scaled(
          pairScale(row.side(unit / 4), unit / 2),
          [&](uint32_t i) { return twoBits(row.quant(2 * unit + i / 16), i) - 1; }, out);
    case WeightType::kIq2Xxs:
    case WeightType::kIq2Xs:
    case WeightType::kIq2S:
      return unpackIq2(type, row, unit, out);
    case WeightType::kIq3Xxs:
    case WeightType::kIq3S:
      return unpackIq3(type, row, unit, out);
    default:
      return unpack256(type, row, unit, weightGeometry(type, 256).side, out);
  }
}

void WeightRows::dots(uint32_t row, uint32_t units, const float* x, uint32_t stride, uint32_t n,
                      float* products) const {
  float lanes[kTokenBlock][kLanes] = {};
  float values[kUnit];
  for (uint32_t unit = 0; unit < units; ++unit) {
    unpack(row, unit, values);
    for (uint32_t t = 0; t < n; ++t) {
      const float* in = x + static_cast<uint64_t>(t) * stride + unit * kUnit;
      for (uint32_t i = 0; i < kUnit; i += kLanes) {
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
          lanes[t][lane] += values[i + lane] * in[i + lane];
        }
      }
    }
  }
  for (uint32_t t = 0; t < n; ++t) {
    products[t] = sumLanes(lanes[t]);
  }
}

}  // namespace oriel_internal
