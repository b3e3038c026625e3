#include <algorithm>

#include "base/hash.h"
#include "speed/measure_speed.h"

namespace oriel_internal {

uint64_t SpeedTarget::hash() const {
  const uint32_t dims[] = {shape.n_layers, shape.n_embd, shape.n_heads, shape.n_kv_heads,
                           shape.head_dim, shape.n_ff,   shape.n_vocab};
  uint64_t hash = hashBytes(dims, sizeof(dims), hashBytes(&features, sizeof(features)));
  for (uint32_t i = 0; i < n_matrices; ++i) {
    const uint64_t work[] = {matrices[i].tensor_type, matrices[i].body_weights,
                             matrices[i].head_weights, kernels[i]};
    hash = hashBytes(work, sizeof(work), hash);
  }
  return hash;
}

SpeedTarget speedTargetOf(const ModelDesc& model, const WorkShape& work) {
  SpeedTarget target;
  target.shape = {model.n_layers, model.n_embd, model.n_heads, model.n_kv_heads,
                  model.head_dim, model.n_ff,   model.n_vocab};
  if (!model.attends()) {
    // The representative layers have attention and a feed-forward.
    target.shape.head_dim = 64;
    target.shape.n_heads = target.shape.n_kv_heads = std::max(model.n_embd / 64, 1u);
    target.shape.n_ff = std::max(model.n_ff, 2 * model.n_embd);
  }
  for (uint32_t i = 0; i < work.n_matrices; ++i) {
    WorkShape::Matrices matrices = work.matrices[i];
    matrices.body_weights +=
        static_cast<uint64_t>(static_cast<double>(matrices.expert_weights) * work.expertShare(1));
    if (matrices.body_weights + matrices.head_weights != 0) {
      target.matrices[target.n_matrices++] = matrices;
    }
  }
  return target;
}

SpeedTarget anySpeedTarget() {
  SpeedTarget target;
  target.shape = {16, 2048, 32, 8, 64, 5632, 32000};
  for (const TensorType type : {TensorType::kF16, TensorType::kQ8_0, TensorType::kQ4_0}) {
    target.matrices[target.n_matrices++] = {static_cast<uint32_t>(type), 1, 1};
  }
  return target;
}

}  // namespace oriel_internal
