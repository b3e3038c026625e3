#include "plan/weight_placement.h"

#include <algorithm>
#include <cmath>

#include "kv/memory.h"
#include "model/keys.h"

namespace oriel_internal {
namespace {

// After the Hadamard rotation a head's largest value is near 2.5 |b| / sqrt(head_dim), where |b| is the norm of its
// bias. Rounding then moves every value by about largest / (127 sqrt(12)) in int8 and largest / (8 sqrt(12)) in int4.
// It moves a score by that times the query's typical value, which is a few units in models with such biases. For
// head_dim 64 these limits keep the shift below .05 and .15 per unit of query. (Qwen2: norm 22 in most layers, 605 and
// 921 in the first and last.)
constexpr double kInt8BiasNorm = 60.0;
constexpr double kInt4BiasNorm = 12.0;
constexpr double kNormHeadDim = 64.0;

// The lengths of normed keys and queries follow from the weights: sqrt(head_dim) times their root mean square. By the
// same estimate rounding moves a score by about this factor times both root mean squares, the scale of scores and
// sqrt(head_dim).
constexpr double kInt8Noise = 2.5 / (127 * 3.4641);
constexpr double kInt4Noise = 2.5 / (8 * 3.4641);
// Largest allowed shift of a score, as a standard deviation in nats. It equals the limits for biases when a query's
// values are between 2 and 3. A healthy head, whose scores deviate by 1 to 4, stays below it.
constexpr double kMostScoreNoise = 0.4;

// Requires `count` <= kMaxHeadDim.
Status length(const GgufFile& file, const GgufTensor& tensor, uint64_t first, uint32_t count,
              const Log& log, double* norm) {
  double values[kMostTensorValues];
  ORIEL_TRY(readValues(file, tensor, first, count, log, values));
  double square = 0;
  for (uint32_t i = 0; i < count; ++i) {
    square += values[i] * values[i];
  }
  *norm = std::sqrt(square);
  return kOk;
}

Status guardBiases(const GgufFile& file, const TensorIndex& tensors, const LayerKind& kind,
                   uint32_t layer, const Log& log, CacheFormats* formats) {
  const GgufTensor& bias = tensors.find(TensorRole::kKeyBias, layer);
  double largest = 0;
  for (uint32_t head = 0; head < kind.n_kv_heads; ++head) {
    double norm = 0;
    ORIEL_TRY(
        length(file, bias, static_cast<uint64_t>(head) * kind.head_dim, kind.head_dim, log, &norm));
    largest = std::max(largest, norm);
  }
  const double per_dim = std::sqrt(kind.head_dim / kNormHeadDim);
  if (largest > kInt8BiasNorm * per_dim) {
    formats->requireF16(layer);
  } else if (largest > kInt4BiasNorm * per_dim) {
    formats->requireInt8(layer);
  }
  return kOk;
}

// Length of the weights in the longest head. Norm weights shared by all heads have one length.
Status longestHead(const GgufFile& file, const GgufTensor& norm, const LayerKind& kind,
                   uint32_t heads, const Log& log, double* longest) {
  *longest = 0;
  for (uint32_t head = 0; head < (kind.row_norms ? heads : 1); ++head) {
    double found = 0;
    ORIEL_TRY(length(file, norm, static_cast<uint64_t>(head) * kind.head_dim, kind.head_dim, log,
                     &found));
    *longest = std::max(*longest, found);
  }
  return kOk;
}

Status guardNorms(const GgufFile& file, const TensorIndex& tensors, const LayerKind& kind,
                  uint32_t layer, const Log& log, CacheFormats* formats) {
  double key = 0;
  double query = 0;
  ORIEL_TRY(longestHead(file, tensors.find(TensorRole::kKeyNorm, layer), kind, kind.n_kv_heads, log,
                        &key));
  ORIEL_TRY(longestHead(file, tensors.find(TensorRole::kQueryNorm, layer), kind, kind.n_heads, log,
                        &query));
  // Product of both root mean squares, sqrt(head_dim) and the scale of scores.
  const double scores = key * query / std::sqrt(static_cast<double>(kind.head_dim)) *
                        static_cast<double>(kind.attention_scale);
  if (kInt8Noise * scores > kMostScoreNoise) {
    formats->requireF16(layer);
    formats->blameNorm(layer);
  } else if (kInt4Noise * scores > kMostScoreNoise) {
    formats->requireInt8(layer);
    formats->blameNorm(layer);
  }
  return kOk;
}

}  // namespace

Status guardKeys(const GgufFile& file, const TensorIndex& tensors, const ModelDesc& model,
                 const Log& log, CacheFormats* formats) {
  for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
    const LayerKind& kind = model.kind(layer);
    if (!isRounded(model, layer)) {
      continue;
    }
    if (tensors.has(TensorRole::kKeyBias, layer)) {
      ORIEL_TRY(guardBiases(file, tensors, kind, layer, log, formats));
    }
    if (tensors.has(TensorRole::kKeyNorm, layer) && tensors.has(TensorRole::kQueryNorm, layer)) {
      ORIEL_TRY(guardNorms(file, tensors, kind, layer, log, formats));
    }
  }
  return kOk;
}

}  // namespace oriel_internal
