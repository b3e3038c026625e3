// Ops of latent attention in plain scalar C++, for the reference executor.
#pragma once

#include "kv/cache_layout.h"
#include "plan/step_block.h"

namespace oriel_internal {

struct ReferenceLatentAppend {
  LatentAppendPush push;
  KvFormat format;
  StepBlock step;
  const float* heads;
  float* queries;
  uint32_t* memory;
  const float* vectors;
};
/// For token `t`.
void referenceLatentAppend(const ReferenceLatentAppend& task, uint32_t t);

struct ReferenceLatentAttention {
  LatentAttentionPush push;
  KvFormat format;
  StepBlock step;
  const float* queries;
  float* out;
  uint32_t* memory;
};
/// For one head of token `t` over one split.
void referenceLatentAttention(const ReferenceLatentAttention& task, uint32_t t, uint32_t head,
                              uint32_t split);

}  // namespace oriel_internal
