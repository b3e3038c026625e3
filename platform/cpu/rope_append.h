// Rotates queries and keys, and stores keys and values in the cache, bitwise equal to kv/kv_side.h.
#pragma once

#include "cpu/simd.h"
#include "plan/plan.h"

namespace oriel_internal {

struct RopeAppendTask {
  explicit RopeAppendTask(const StepBlock& block) : step(block) {}

  RopeAppendPush push = {};
  KvFormat k_format = KvFormat::kF16;
  KvFormat v_format = KvFormat::kF16;
  const float* qkv = nullptr;
  StepBlock step;
  const float* norms = nullptr;  ///< in the form of kRopeNorms; null: none
  float* queries = nullptr;
  uint32_t* keys = nullptr;
  uint32_t* values = nullptr;
};

/// Heads first .. last - 1 of a token, counted over queries, keys and values. Different heads may run
/// concurrently.
using RopeAppendFn = void (*)(const RopeAppendTask& task, uint32_t token, uint32_t first,
                              uint32_t last);
RopeAppendFn ropeAppendKernel(SimdTarget target);

/// The same for latent attention.
struct LatentAppendTask {
  explicit LatentAppendTask(const StepBlock& block) : step(block) {}

  LatentAppendPush push = {};
  KvFormat format = KvFormat::kF16;
  const float* heads = nullptr;
  float* queries = nullptr;
  uint32_t* memory = nullptr;
  const float* vectors = nullptr;
  StepBlock step;
};
/// Handles items first .. last - 1: the heads of a token, followed by its vector.
using LatentAppendFn = void (*)(const LatentAppendTask& task, uint32_t token, uint32_t first,
                                uint32_t last);
LatentAppendFn latentAppendKernel(SimdTarget target);

/// One row of an op kHadamard.
using HadamardFn = void (*)(const HadamardPush& push, float* row);
HadamardFn hadamardKernel(SimdTarget target);

}  // namespace oriel_internal
