#include "exec/reference_weights.h"

#include <cstring>

#include "base/half.h"

namespace oriel {
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

float pairScale(const Row& row, uint32_t unit) {
  const uint32_t pair = row.side(unit / 2);
  return unit % 2 == 0 ? lowHalf(pair) : highHalf(pair);
}

// Nibble of value i of a unit whose quad is the row's quad `quad`.
uint32_t nibble(const Row& row, uint32_t quad, uint32_t i) {
  return row.quant(4 * quad + i % 16 / 4) >> (8 * (i % 4) + (i < 16 ? 0 : 4)) & 15;
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
    case WeightType::kQ8_0: {
      const float d = pairScale(row, unit);
      for (uint32_t i = 0; i < kUnit; ++i) {
        out[i] = d * static_cast<float>(
                         static_cast<int8_t>(row.quant(unit * 8 + i / 4) >> (8 * (i % 4)) & 0xff));
      }
      return;
    }
    case WeightType::kQ4_0: {
      const float d = pairScale(row, unit);
      for (uint32_t i = 0; i < kUnit; ++i) {
        out[i] = d * static_cast<float>(static_cast<int32_t>(nibble(row, unit, i)) - 8);
      }
      return;
    }
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

}  // namespace oriel
