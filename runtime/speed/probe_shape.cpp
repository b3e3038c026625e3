#include "speed/probe_shape.h"

#include <algorithm>

#include "base/checked.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kLargestBlock = 256;  // values
constexpr uint32_t kFewRows = 32;

uint64_t layerBytes(ProbeShape shape) {
  shape.n_layers = 1;
  shape.n_vocab = kFewRows;
  return probeFileBytes(shape);
}

uint32_t wholeBlocks(uint32_t values) {
  return static_cast<uint32_t>(alignUp(values, kLargestBlock));
}

/// Halves the widths, feed-forward first: for large matrices the speed hardly depends on the size. False at the minimum.
bool halve(ProbeShape* shape) {
  if (shape->n_ff > shape->n_embd) {
    shape->n_ff = wholeBlocks(shape->n_ff / 2);
  } else if (shape->n_heads % 2 == 0 && shape->n_kv_heads % 2 == 0 && shape->n_embd >= 2048) {
    shape->n_embd = wholeBlocks(shape->n_embd / 2);
    shape->n_heads /= 2;
    shape->n_kv_heads /= 2;
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool shapeOfType(const ProbeShape& model, uint32_t tensor_type, uint64_t layer_bytes,
                 uint64_t head_bytes, ProbeShape* shape) {
  *shape = model;
  shape->tensor_type = tensor_type;
  if (layerBytes(*shape) == 0) {
    shape->n_embd = wholeBlocks(shape->n_embd);
    shape->n_ff = wholeBlocks(shape->n_ff);
    while (shape->n_heads * shape->head_dim % kLargestBlock != 0) {
      shape->n_heads += shape->n_kv_heads;
    }
    if (layerBytes(*shape) == 0) {
      return false;
    }
  }
  while (layerBytes(*shape) > layer_bytes && halve(shape)) {
  }
  if (layerBytes(*shape) == 0) {
    return false;
  }
  // The embedding is stored like the output matrix: both have n_vocab rows.
  ProbeShape rows = *shape;
  rows.n_layers = 1;
  rows.n_vocab = 2 * kFewRows;
  const uint64_t row_bytes = (probeFileBytes(rows) - layerBytes(*shape)) / kFewRows;
  const uint64_t most_rows =
      std::max<uint64_t>(head_bytes / std::max<uint64_t>(row_bytes, 1), kFewRows);
  shape->n_vocab = static_cast<uint32_t>(std::min<uint64_t>(shape->n_vocab, most_rows));
  return true;
}

uint32_t layersWithin(const ProbeShape& shape, uint64_t bytes) {
  const uint64_t layers = bytes / std::max<uint64_t>(layerBytes(shape), 1);
  return static_cast<uint32_t>(std::clamp<uint64_t>(layers, 1, std::max(shape.n_layers, 1u)));
}

}  // namespace oriel_internal
