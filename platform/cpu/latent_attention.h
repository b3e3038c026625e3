// Attention to latents, limited by arithmetic because every head reads the same vectors. A block of slots is unpacked
// to floats once for all heads. Bytes moved: a slot's vector once for up to mostLatentQueries() queries; 2 *
// (2 * latent_dim + rope_dim) operations per query and slot.
#pragma once

#include "cpu/simd.h"
#include "plan/plan.h"

namespace oriel_internal {

struct LatentAttentionTask {
  explicit LatentAttentionTask(const StepBlock& block) : step(block) {}

  LatentAttentionPush push = {};
  KvFormat format = KvFormat::kF16;
  const float* queries = nullptr;
  StepBlock step;
  const uint32_t* memory = nullptr;
  float* out = nullptr;
  uint32_t n_tokens = 1;  ///< of the step
};

/// Queries worked on at a time, from the heads of neighbouring tokens. The queries and their sums are on the stack
/// of a thread.
constexpr uint32_t kMostLatentQueries = 48;
constexpr uint32_t kScoredFloats = 20480;
constexpr uint32_t kGatheredLatentFloats = 16384;
constexpr uint32_t latentStride(uint32_t values) { return (values + 15) / 16 * 16; }
constexpr uint32_t mostLatentQueries(uint32_t latent_dim, uint32_t rope_dim) {
  uint32_t most = kMostLatentQueries;
  while (most * latentStride(latent_dim) > kGatheredLatentFloats ||
         most * latentStride(latent_dim + rope_dim) > kScoredFloats) {
    most -= 4;
  }
  return most;
}
static_assert(mostLatentQueries(kMaxLatentDim, kMaxLatentRopeDim) >= 4, "some fit");
/// Tokens that share loaded vectors.
inline uint32_t latentTokens(const LatentAttentionPush& push) {
  const uint32_t most = mostLatentQueries(push.latent_dim, push.rope_dim);
  return push.n_heads < most ? most / push.n_heads : 1;
}

/// All heads of tokens first .. first + count - 1, at most latentTokens() tokens, for `n_splits` splits. The result
/// is stored as the share of the first split.
using AttendLatentsFn = void (*)(const LatentAttentionTask& task, uint32_t first, uint32_t count,
                                 uint32_t first_split, uint32_t n_splits);
AttendLatentsFn attendLatentsKernel(SimdTarget target);

}  // namespace oriel_internal
