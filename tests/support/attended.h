// Plain attention of a head. Tests only.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kv/kv_side.h"
#include "shaders/shared/layout.h"

namespace oriel_internal::test {

/// Attention in double over the memories' contents.
inline std::vector<double> attended(const AttentionPush& push, const KvSide& keys,
                                    const KvSide& values, const float* queries, uint32_t head,
                                    const View& view) {
  const uint32_t d = push.head_dim;
  const uint32_t kv_head = head / (push.n_heads / push.n_kv_heads);
  std::vector<float> stored(d);
  std::vector<double> scores;
  for (uint32_t i = 0; i < view.n_sinks + view.count; ++i) {
    const bool sink = i < view.n_sinks;
    const uint32_t slot = sink ? i : (view.begin + i - view.n_sinks) % view.ring;
    sink ? keys.loadSink(kv_head, slot, stored.data())
         : keys.loadRing(kv_head, slot, stored.data());
    double score = 0;
    for (uint32_t c = 0; c < d; ++c) {
      score += static_cast<double>(stored[c]) *
               static_cast<double>(queries[(2 * head + (sink ? 1 : 0)) * d + c]);
    }
    score *= static_cast<double>(push.scale);
    scores.push_back(push.soft_cap != 0 ? static_cast<double>(push.soft_cap) *
                                              std::tanh(score / static_cast<double>(push.soft_cap))
                                        : score);
  }
  const double most = *std::max_element(scores.begin(), scores.end());
  std::vector<double> out(d, 0.0);
  double sum = 0;
  for (uint32_t i = 0; i < scores.size(); ++i) {
    const bool sink = i < view.n_sinks;
    const uint32_t slot = sink ? i : (view.begin + i - view.n_sinks) % view.ring;
    sink ? values.loadSink(kv_head, slot, stored.data())
         : values.loadRing(kv_head, slot, stored.data());
    const double weight = std::exp(scores[i] - most);
    sum += weight;
    for (uint32_t c = 0; c < d; ++c) {
      out[c] += weight * static_cast<double>(stored[c]);
    }
  }
  for (double& value : out) {
    value /= sum;
  }
  return out;
}

}  // namespace oriel_internal::test
