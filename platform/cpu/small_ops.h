// Ops on a few vectors: norms, activations, biases, convolutions, merging of splits.
#pragma once

#include "cpu/simd.h"
#include "plan/plan.h"

namespace oriel_internal {

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

}  // namespace oriel_internal
