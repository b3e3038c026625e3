#include "exec/recall_attention.h"

#include <cmath>
#include <cstring>

#include "plan/memory_layout.h"

namespace oriel_internal {
namespace {

// Limit of scores. Larger scores count as equal, so that doubles stay finite for any keys.
constexpr float kMostScore = 300;

float dot(const float* a, const int8_t* b, uint32_t n) {
  constexpr uint32_t kLanes = 8;
  float sums[kLanes] = {};
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (uint32_t k = 0; k < kLanes; ++k) {
      sums[k] += a[i + k] * static_cast<float>(b[i + k]);
    }
  }
  float sum = 0;
  for (; i < n; ++i) {
    sum += a[i] * static_cast<float>(b[i]);
  }
  for (const float lane : sums) {
    sum += lane;
  }
  return sum;
}

}  // namespace

RecallLayer findRecallLayer(const Plan& plan, const ModelDesc& model, const CacheShape& cache) {
  RecallLayer found;
  const Op* last = nullptr;
  for (uint32_t i = 0; i < plan.fill_ops; ++i) {
    const Op& op = plan.ops[static_cast<uint32_t>(StepList::kChunk)][i];
    last = op.kind == OpKind::kRopeAppend || op.kind == OpKind::kLatentAppend ? &op : last;
  }
  if (last == nullptr || last->kind != OpKind::kRopeAppend) {
    return found;
  }
  const BufferRef& keys = last->bindings[3];
  forEachPlacedMemory(model, cache, plan.formats,
                      [&](const Memory& memory, const BufferRef(&sides)[2]) {
                        if (memory.isRecalled() && memory.kind == MemoryKind::kKeysValues &&
                            arenaOffset(sides[0]) == arenaOffset(keys)) {
                          found.any = true;
                          found.layer = memory.layer;
                        }
                      });
  const RopeAppendPush& push = last->push.rope_append;
  found.n_heads = push.n_heads;
  found.n_kv_heads = model.kind(found.layer).n_kv_heads;
  found.head_dim = push.head_dim;
  found.scale = model.kind(found.layer).attention_scale;
  found.queries = last->bindings[2];
  found.stride = push.query_stride;
  found.any = found.any &&
              RecallKeys{found.layer, found.n_kv_heads, found.head_dim}.bytes() <= kRecallRoomBytes;
  return found;
}

void RecallScorer::add(const uint8_t* keys, double* sums) const {
  const uint32_t d = layer_.head_dim;
  const uint32_t group = layer_.n_heads / layer_.n_kv_heads;
  for (uint32_t kv = 0; kv < layer_.n_kv_heads; ++kv) {
    const uint8_t* const key = keys + kv * (sizeof(float) + d);
    float scale = 0;
    std::memcpy(&scale, key, sizeof(scale));
    if (scale < 0) {
      continue;
    }
    const int8_t* const codes = reinterpret_cast<const int8_t*>(key + sizeof(scale));
    for (uint32_t q = 0; q < count_; ++q) {
      for (uint32_t h = kv * group; h < (kv + 1) * group; ++h) {
        const float score =
            dot(queries_ + (q * layer_.n_heads + h) * d, codes, d) * scale * layer_.scale;
        sums[q * layer_.n_heads + h] += std::exp(static_cast<double>(std::fmin(score, kMostScore)));
      }
    }
  }
}

}  // namespace oriel_internal
