#include "exec/reference_weights.h"

#include <cstring>

#include "base/half.h"

namespace oriel {
namespace {

constexpr uint32_t kLanes = 8;  // partial sums of a dot product; lets compilers vectorise it
static_assert(kLanes == kUnit, "a unit is one step of all lanes");

float sumLanes(const float (&lanes)[kLanes]) {
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

}  // namespace

float WeightRows::scale(uint32_t row, uint32_t unit) const {
  const uint32_t block = unit * kUnit / kQuantBlock;
  const uint64_t index = static_cast<uint64_t>(row) * blocks_per_row + block;
  const uint32_t pair = words[scales_word + index / 2];
  return halfToFloat(static_cast<uint16_t>(index % 2 == 0 ? pair : pair >> 16));
}

void WeightRows::unpack(uint32_t row, uint32_t unit, float (&out)[kUnit]) const {
  const uint32_t* w = words + static_cast<uint64_t>(row) * words_per_row;
  switch (type) {
    case WeightType::kF32:
      std::memcpy(out, w + unit * kUnit, sizeof(out));
      return;
    case WeightType::kF16:
      for (uint32_t i = 0; i < kUnit; ++i) {
        out[i] = halfToFloat(static_cast<uint16_t>(w[unit * 4 + i / 2] >> (16 * (i % 2))));
      }
      return;
    case WeightType::kBf16:
      for (uint32_t i = 0; i < kUnit; ++i) {
        out[i] = bfloat16ToFloat(static_cast<uint16_t>(w[unit * 4 + i / 2] >> (16 * (i % 2))));
      }
      return;
    case WeightType::kQ8_0: {
      const float s = scale(row, unit);
      for (uint32_t i = 0; i < kUnit; ++i) {
        out[i] = s * static_cast<float>(
                         static_cast<int8_t>(w[unit * 2 + i / 4] >> (8 * (i % 4)) & 0xffu));
      }
      return;
    }
    case WeightType::kQ4_0: {
      const float s = scale(row, unit);
      for (uint32_t i = 0; i < kUnit; ++i) {
        out[i] = s * static_cast<float>(static_cast<int32_t>(w[unit] >> (4 * i) & 0xfu) - 8);
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
      for (uint32_t i = 0; i < kLanes; ++i) {
        lanes[t][i] += values[i] * in[i];
      }
    }
  }
  for (uint32_t t = 0; t < n; ++t) {
    products[t] = sumLanes(lanes[t]);
  }
}

}  // namespace oriel
