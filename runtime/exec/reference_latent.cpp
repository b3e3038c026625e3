#include "exec/reference_latent.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kv/kv_side.h"
#include "kv/quantise.h"
#include "kv/window.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kMostValues = kMaxLatentDim + kMaxLatentRopeDim;

/// The memory of token `t`'s session.
template <typename Task>
KvSide memoryOf(const Task& task, uint32_t t) {
  const auto& p = task.push;
  const uint32_t cols = p.latent_dim + p.rope_dim;
  return KvSide(task.format, sessionShape(p, 1, cols, task.step.view(t, p.view)), task.memory);
}

/// Rotates `from` by a table of pairs (cos, sin).
void rotate(const float* from, const LatentAppendPush& p, const float* pairs, float* to) {
  const uint32_t step = p.pair_stride;
  for (uint32_t pair = 0; pair < p.rope_dim / 2; ++pair) {
    const uint32_t i = step == 1 ? 2 * pair : pair;
    const float c = pairs[2 * pair];
    const float s = pairs[2 * pair + 1];
    to[i] = from[i] * c - from[i + step] * s;
    to[i + step] = from[i] * s + from[i + step] * c;
  }
}

void spread(float* values, uint32_t n) { hadamard(values, n, hadamardBlock(n)); }

}  // namespace

void referenceLatentAppend(const ReferenceLatentAppend& task, uint32_t t) {
  const LatentAppendPush& p = task.push;
  const bool rounds = task.format != KvFormat::kF16;
  const auto table = [&](uint32_t word) {
    return task.step.floats(word + static_cast<uint64_t>(t) * p.rotation_stride);
  };
  for (uint32_t h = 0; h < p.n_heads; ++h) {
    const float* const from =
        task.heads + static_cast<uint64_t>(t) * p.heads_stride + (h + 1) * p.head_dim - p.rope_dim;
    float* const latent = task.queries + static_cast<uint64_t>(t) * p.query_stride +
                          static_cast<uint64_t>(h) * (p.latent_dim + 2 * p.rope_dim);
    float* const of_ring = latent + p.latent_dim;
    float* const of_sinks = of_ring + p.rope_dim;
    rotate(from, p, table(p.query_rotation), of_ring);
    rotate(from, p, table(p.sink_rotation), of_sinks);
    if (rounds) {
      spread(latent, p.latent_dim);
      spread(of_ring, p.rope_dim);
      spread(of_sinks, p.rope_dim);
    }
  }
  const float* const vector =
      task.vectors + static_cast<uint64_t>(t) * p.vector_stride + p.vector_first;
  float stored[kMostValues];
  std::copy(vector, vector + p.latent_dim, stored);
  rotate(vector + p.latent_dim, p, table(p.key_rotation), stored + p.latent_dim);
  if (rounds) {
    spread(stored, p.latent_dim);
    spread(stored + p.latent_dim, p.rope_dim);
  }
  KvSide memory = memoryOf(task, t);
  const uint32_t slot = task.step.view(t, p.view).slot;
  slot < p.sinks ? memory.storeSink(0, slot, stored) : memory.storeRing(0, slot - p.sinks, stored);
}

// Online softmax, as in attention over keys and values.
void referenceLatentAttention(const ReferenceLatentAttention& task, uint32_t t, uint32_t head,
                              uint32_t split) {
  const LatentAttentionPush& p = task.push;
  const View& view = task.step.view(t, p.view);
  const KvSide memory = memoryOf(task, t);
  const float* const query = task.queries + static_cast<uint64_t>(t) * p.query_stride +
                             static_cast<uint64_t>(head) * (p.latent_dim + 2 * p.rope_dim);
  float stored[kMostValues];
  float sums[kMaxLatentDim] = {};
  float sum = 0;
  float most = -3.0e38f;
  const uint32_t visible = view.n_sinks + view.count;
  const uint64_t begin = static_cast<uint64_t>(split) * p.split_slots;
  const uint64_t end = std::min<uint64_t>(begin + p.split_slots, visible);
  for (uint64_t i = begin; i < end; ++i) {
    const bool is_sink = i < view.n_sinks;
    if (is_sink) {
      memory.loadSink(0, static_cast<uint32_t>(i), stored);
    } else {
      memory.loadRing(0, static_cast<uint32_t>((view.begin + (i - view.n_sinks)) % view.ring),
                      stored);
    }
    const float* const rotated = query + p.latent_dim + (is_sink ? p.rope_dim : 0);
    float score = 0;
    for (uint32_t c = 0; c < p.latent_dim; ++c) {
      score += query[c] * stored[c];
    }
    for (uint32_t c = 0; c < p.rope_dim; ++c) {
      score += rotated[c] * stored[p.latent_dim + c];
    }
    score *= p.scale;
    if (score > most) {
      const float shrink = std::exp(most - score);
      sum *= shrink;
      for (uint32_t c = 0; c < p.latent_dim; ++c) {
        sums[c] *= shrink;
      }
      most = score;
    }
    const float weight = std::exp(score - most);
    sum += weight;
    for (uint32_t c = 0; c < p.latent_dim; ++c) {
      sums[c] += weight * stored[c];
    }
  }
  if (p.splits == 1) {
    float* const out = task.out + static_cast<uint64_t>(t) * p.out_stride + head * p.latent_dim;
    for (uint32_t c = 0; c < p.latent_dim; ++c) {
      out[c] = sums[c] / sum;
    }
    return;
  }
  const uint64_t index = (static_cast<uint64_t>(t) * p.n_heads + head) * p.splits + split;
  float* const out = task.out + index * (p.latent_dim + kPartialExtra);
  std::memcpy(out, sums, p.latent_dim * sizeof(float));
  out[p.latent_dim] = most;
  out[p.latent_dim + 1] = sum;
}

}  // namespace oriel_internal
