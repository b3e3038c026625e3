// Division of attention among threads, for keys and values or for latents. Every thread of the team calls each function,
// which leaves the section open.
#pragma once

#include "cpu/attention.h"
#include "cpu/latent_attention.h"
#include "cpu/pool.h"
#include "cpu/rope_append.h"

namespace oriel_internal {

class AttentionOps {
 public:
  AttentionOps(Pool* pool, SimdTarget target)
      : pool_(*pool),
        attend_(attendKernel(target)),
        rope_append_(ropeAppendKernel(target)),
        attend_latents_(attendLatentsKernel(target)),
        latent_append_(latentAppendKernel(target)),
        hadamard_(hadamardKernel(target)) {}

  void ropeAppend(const RopeAppendTask& task, uint32_t n_tokens, uint32_t thread);
  void attention(const AttentionTask& task, uint32_t thread);

  void latentAppend(const LatentAppendTask& task, uint32_t n_tokens, uint32_t thread);
  /// `apart`: each token is divided as if it were alone.
  void latentAttention(const LatentAttentionTask& task, bool apart, uint32_t thread);
  /// In place.
  void hadamard(const HadamardPush& push, float* rows, uint32_t n_tokens, uint32_t thread);

 private:
  template <typename Append, typename Task>
  void append(Append kernel, const Task& task, uint32_t heads, uint32_t n_tokens, uint32_t thread);

  Pool& pool_;
  const AttendFn attend_;
  const RopeAppendFn rope_append_;
  const AttendLatentsFn attend_latents_;
  const LatentAppendFn latent_append_;
  const HadamardFn hadamard_;
};

}  // namespace oriel_internal
