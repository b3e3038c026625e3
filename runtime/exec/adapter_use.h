// A session's use of the model's adapters: their scales, and the first token of activated ones.
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
  /// The factor for an adapter's products in token `t`.
  float at(const AdapterGate& gate, uint64_t t) const {
    return t >= from[gate.adapter] ? scale[gate.adapter] * gate.factor : 0.0f;
  }
  void markStale(uint64_t position) { stale_from = std::min(stale_from, position); }

  float scale[kMaxAdapters] = {};
  uint64_t from[kMaxAdapters] = {};  ///< first token that the adapter applies to
  uint64_t searched = 0;             ///< tokens searched for invocations
  uint64_t stale_from = kNever;      ///< tokens from here on were computed with other scales
  bool reads_again = false;
};

}  // namespace oriel_internal
