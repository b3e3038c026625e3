// The ops that find the best tokens, for executors that work in host memory; layout.h has the contract.
#pragma once

#include <cstdint>

#include "shaders/shared/layout.h"

namespace oriel_internal {

/// Orders as the logit does; 0 for minus infinity and for what is no number.
uint32_t topKey(float logit);

void topBlocks(const float* logits, const TopPush& push, uint32_t* keys);
/// Always as many as there are, up to kTopCapacity.
void topTokens(const float* logits, const TopPush& push, const uint32_t* keys, TopTokens* top);

}  // namespace oriel_internal
