#include "plan/key_guard.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"

namespace oriel {
namespace {

// After the Hadamard rotation a head's largest value is near 2.5 |b| / sqrt(head_dim), where |b| is the
// norm of its bias; rounding then moves every value by about largest / (127 sqrt(12)) in int8 and
// largest / (8 sqrt(12)) in int4, and a score by that times the query's typical value, which is a few
// units in models with such biases. These norms, for head_dim 64, keep that below .05 and .15 per unit
// of query. (Qwen2: norm 22 in most layers, 605 and 921 in the first and last.)
constexpr double kInt8BiasNorm = 60.0;
constexpr double kInt4BiasNorm = 12.0;
constexpr double kNormHeadDim = 64.0;

// Normed keys and queries have lengths known from the weights, sqrt(head_dim) times their root mean
// square. By the same reckoning rounding moves a score by about this times the product of both roots, the
// scale of scores and sqrt(head_dim).
constexpr double kInt8Noise = 2.5 / (127 * 3.4641);
constexpr double kInt4Noise = 2.5 / (8 * 3.4641);
// Most that a score may move, standard deviation in nats: what the limits for biases come to when a
// query's values are between 2 and 3. A healthy head, whose scores deviate by 1 to 4, stays below it.
constexpr double kMostScoreNoise = 0.4;

double valueAt(const GgufTensor& tensor, uint64_t i) {
  if (static_cast<TensorType>(tensor.type) == TensorType::kF32) {
    float value;
    std::memcpy(&value, tensor.data + 4 * i, sizeof(value));
    return static_cast<double>(value);
  }
  uint16_t bits;
  std::memcpy(&bits, tensor.data + 2 * i, sizeof(bits));
  return static_cast<double>(static_cast<TensorType>(tensor.type) == TensorType::kF16
                                 ? halfToFloat(bits)
                                 : bfloat16ToFloat(bits));
}

double length(const GgufTensor& tensor, uint64_t first, uint32_t count) {
  double square = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const double value = valueAt(tensor, first + i);
    square += value * value;
  }
  return std::sqrt(square);
}

void guardBiases(const GgufFile& file, const ModelDesc& model, uint32_t layer,
                 CacheFormats* formats) {
  const GgufTensor bias = findTensor(file, model, TensorRole::kKeyBias, layer);
  double largest = 0;
  for (uint32_t head = 0; head < model.n_kv_heads; ++head) {
    largest = std::max(
        largest, length(bias, static_cast<uint64_t>(head) * model.head_dim, model.head_dim));
  }
  const double per_dim = std::sqrt(model.head_dim / kNormHeadDim);
  if (largest > kInt8BiasNorm * per_dim) {
    formats->requireF16(layer);
  } else if (largest > kInt4BiasNorm * per_dim) {
    formats->requireInt8(layer);
  }
}

void guardNorms(const GgufFile& file, const ModelDesc& model, uint32_t layer,
                CacheFormats* formats) {
  const GgufTensor key = findTensor(file, model, TensorRole::kKeyNorm, layer);
  const GgufTensor query = findTensor(file, model, TensorRole::kQueryNorm, layer);
  // Of root mean squares, times sqrt(head_dim).
  const double scores = length(key, 0, model.head_dim) * length(query, 0, model.head_dim) /
                        std::sqrt(static_cast<double>(model.head_dim)) *
                        static_cast<double>(model.attention_scale);
  if (kInt8Noise * scores > kMostScoreNoise) {
    formats->requireF16(layer);
    formats->blameNorm(layer);
  } else if (kInt4Noise * scores > kMostScoreNoise) {
    formats->requireInt8(layer);
    formats->blameNorm(layer);
  }
}

}  // namespace

void guardKeys(const GgufFile& file, const ModelDesc& model, CacheFormats* formats) {
  const bool biases = hasTensor(model, TensorRole::kKeyBias);
  const bool norms =
      hasTensor(model, TensorRole::kKeyNorm) && hasTensor(model, TensorRole::kQueryNorm);
  for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
    if (biases) {
      guardBiases(file, model, layer, formats);
    }
    if (norms) {
      guardNorms(file, model, layer, formats);
    }
  }
}

}  // namespace oriel
