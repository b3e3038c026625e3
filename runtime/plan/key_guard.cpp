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

double valueAt(const GgufTensor& tensor, uint64_t i) {
  if (static_cast<TensorType>(tensor.type) == TensorType::kF32) {
    float value;
    std::memcpy(&value, tensor.data + 4 * i, sizeof(value));
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, tensor.data + 2 * i, sizeof(bits));
  return static_cast<TensorType>(tensor.type) == TensorType::kF16 ? halfToFloat(bits)
                                                                 : bfloat16ToFloat(bits);
}

}  // namespace

void guardKeys(const GgufFile& file, const ModelDesc& model, CacheFormats* formats) {
  if (!model.qkv_bias) {
    return;
  }
  const double per_dim = std::sqrt(model.head_dim / kNormHeadDim);
  for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
    const GgufTensor bias = findTensor(file, model, TensorRole::kKeyBias, layer);
    double largest = 0;
    for (uint32_t head = 0; head < model.n_kv_heads; ++head) {
      double square = 0;
      for (uint32_t i = 0; i < model.head_dim; ++i) {
        const double value = valueAt(bias, static_cast<uint64_t>(head) * model.head_dim + i);
        square += value * value;
      }
      largest = std::max(largest, std::sqrt(square));
    }
    if (largest > kInt8BiasNorm * per_dim) {
      formats->requireF16(layer);
    } else if (largest > kInt4BiasNorm * per_dim) {
      formats->requireInt8(layer);
    }
  }
}

}  // namespace oriel
