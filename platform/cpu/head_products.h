// Products of each head with its own matrix. Bytes moved: the weights once for every kTileTokens tokens, from a
// cache that holds one head's matrix; two operations per weight and token.
#pragma once

#include "cpu/matmul.h"
#include "cpu/pool.h"

namespace oriel_internal {

/// An op kHeadMatmul and the addresses of its bindings.
struct HeadTask {
  HeadMatmulPush push = {};
  WeightType type = WeightType::kF32;
  const uint32_t* weights = nullptr;
  const float* in = nullptr;
  float* out = nullptr;
  uint32_t n_tokens = 0;
  bool apart = false;  ///< MatmulTask
};

/// Memory that is unused by others during the call.
struct HeadRing {
  uint8_t* data = nullptr;
  uint64_t bytes = 0;
};

/// Called by every thread of the team. Leaves the section open.
void runHeads(const HeadTask& task, const MatmulKernels& matmul, const HeadRing& ring, Pool* pool,
              uint32_t thread);

}  // namespace oriel_internal
