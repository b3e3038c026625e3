// Ops of a step, divided among the threads of a team.
#pragma once

#include "cpu/kernels.h"
#include "cpu/pool.h"
#include "cpu/simd.h"
#include "plan/plan.h"

namespace oriel_internal {

// Attention to latents, limited by arithmetic because every head reads the same vectors. A block of slots is unpacked
// to floats once for all heads. Bytes moved: a slot's vector once for up to mostLatentQueries() queries; 2 *
// (2 * latent_dim + rope_dim) operations per query and slot.

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

// Rotates queries and keys, and stores keys and values in the cache, bitwise equal to kv/quantise.h.

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

// Division of attention among threads, for keys and values or for latents. Every thread of the team calls each function,
// which leaves the section open.

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

// Ops on a few vectors: norms, activations, biases, convolutions, merging of splits.

/// A convolution of one token. Columns are of taps 0 .. taps - 1; the last is the token's own.
struct ShortConvTask {
  uint32_t channels = 0;
  uint32_t taps = 0;
  const float* weights = nullptr;          ///< [channels][taps]
  const float* stored[kMaxConvTaps] = {};  ///< columns of earlier steps; null: none
  const float* inputs[kMaxConvTaps] =
      {};                        ///< [b][c][x] of tokens of this step; null without a column
  float* column = nullptr;       ///< output for the token's own column; null: not stored
  const float* gates = nullptr;  ///< [c] of the token
  float* out = nullptr;
};

/// Finds the columns of row `row`. Its own column goes into a ring slot that this step does not read. Leaves weights
/// and out unset.
ShortConvTask shortConvTask(const ShortConvPush& push, const StepBlock& step, uint32_t row,
                            const float* in, float* rings);

struct SmallKernels {
  /// One token: `rows` rows of `cols` from `in` to `out`; `factor`: 1 for none.
  void (*rmsNorm)(const RmsNormPush& push, const float* in, const float* weight, float factor,
                  float* out);
  /// Columns first .. last - 1 of one row.
  void (*gatedActivation)(const GatedActivationPush& push, const float* in, uint32_t first,
                          uint32_t last, float* out);
  /// Heads first .. last - 1 of one token, with partials starting at `in`.
  void (*attentionMerge)(const AttentionMergePush& push, const float* in, uint32_t first,
                         uint32_t last, float* out);
  /// AddBiasPush::change of a row; `number`: its limit or gate.
  void (*change)(const float* values, uint32_t change, float number, uint32_t cols, float* out);
  void (*shortConv)(const ShortConvTask& task);
  /// Replaces `n` values by cap * tanh(value / cap).
  void (*softCap)(float cap, uint32_t n, float* values);
  /// Sets out to, or adds to it, the sum of weights[k] * rows[k] over k < n, in that order.
  void (*addWeighted)(const float* const* rows, const float* weights, uint32_t n, uint32_t cols,
                      bool accumulate, float* out);
};
/// rmsNorm of a layer norm: the same for every target.
void layerNorm(const RmsNormPush& push, const float* in, const float* weight, float factor,
               float* out);
const SmallKernels& smallKernels(SimdTarget target);

// Division of recurrent state work among threads. Every thread of the team calls each function.

class StateOps {
 public:
  StateOps(Pool* pool, const StateKernels& kernels) : pool_(*pool), kernels_(kernels) {}

  void inputs(const StateInputsTask& task, uint32_t thread);
  void scan(const StateScanTask& task, uint32_t thread);

  /// The same for `n` tokens with states of their own: taskOf(t) is the task of token t. A thread takes a piece through
  /// all tokens in order, because a token may read the state that the token before it writes.
  template <typename TaskOf>
  void inputsApart(const StateInputsPush& push, uint32_t n, const TaskOf& taskOf, uint32_t thread) {
    for (uint32_t at = pool_.claim(thread); at < stateInputParts(push); at = pool_.claim(thread)) {
      for (uint32_t t = 0; t < n; ++t) {
        kernels_.inputs(taskOf(t), at, at + 1, 0, 1);
      }
    }
  }
  template <typename TaskOf>
  void scanApart(const StateScanPush& push, uint32_t n, const TaskOf& taskOf, uint32_t thread) {
    const ScanPieces pieces = scanPieces(push, 1);
    for (uint32_t at = pool_.claim(thread); at < pieces.count; at = pool_.claim(thread)) {
      for (uint32_t t = 0; t < n; ++t) {
        scanPiece(taskOf(t), pieces, at);
      }
    }
  }

 private:
  /// Division of a step: each piece has some rows of a head.
  struct ScanPieces {
    uint32_t of_a_head;
    uint32_t rows;
    uint32_t count;
  };
  static ScanPieces scanPieces(const StateScanPush& push, uint32_t n_tokens);
  void scanPiece(const StateScanTask& task, const ScanPieces& pieces, uint32_t index) const;

  Pool& pool_;
  const StateKernels& kernels_;
};

}  // namespace oriel_internal
