// The ops that find the best tokens, for executors in host memory. layout.h has the contract.
#pragma once

#include <cstdint>

#include "shaders/shared/layout.h"

namespace oriel_internal {

/// A key with the order of logits; 0 for minus infinity and NaN.
uint32_t topKey(float logit);

void topBlocks(const float* logits, const TopPush& push, uint32_t* keys);
/// Returns all best tokens, up to kTopCapacity.
void topTokens(const float* logits, const TopPush& push, const uint32_t* keys, TopTokens* top);

}  // namespace oriel_internal
