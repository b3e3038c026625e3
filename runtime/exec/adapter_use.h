// How a session uses the model's adapters: their scales, and where activated ones begin.
#pragma once

#include <algorithm>

#include "model/adapters.h"

namespace oriel_internal {

struct AdapterUse {
  static constexpr uint64_t kNever = UINT64_MAX;

  explicit AdapterUse(const Adapters& adapters) {
    for (uint32_t i = 0; i < adapters.count; ++i) {
      scale[i] = adapters.list[i].scale;
      from[i] = adapters.list[i].n_invocation != 0 ? kNever : 0;
    }
  }
  /// What an adapter's products are multiplied by in token `t`.
  float at(const AdapterGate& gate, uint64_t t) const {
    return t >= from[gate.adapter] ? scale[gate.adapter] * gate.factor : 0.0f;
  }
  void markStale(uint64_t position) { stale_from = std::min(stale_from, position); }

  float scale[kMaxAdapters] = {};
  uint64_t from[kMaxAdapters] = {};  ///< the first token that it acts on
  uint64_t searched = 0;             ///< tokens that were searched for invocations
  uint64_t stale_from = kNever;      ///< tokens from here on were read with other scales
  bool reads_again = false;
};

}  // namespace oriel_internal
