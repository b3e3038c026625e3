// Everything that touches a few vectors only: norms, activations, biases, the merging of splits.
#pragma once

#include "cpu/simd.h"
#include "plan/plan.h"

namespace oriel {

struct SmallKernels {
  /// One token: `rows` rows of `cols` from `in` to `out`.
  void (*rmsNorm)(const RmsNormPush& push, const float* in, const float* weight, float* out);
  /// Columns first .. last - 1 of one token.
  void (*gatedActivation)(const GatedActivationPush& push, const float* in, uint32_t first,
                          uint32_t last, float* out);
  /// Heads first .. last - 1 of one token, whose partials begin at `in`.
  void (*attentionMerge)(const AttentionMergePush& push, const float* in, uint32_t first,
                         uint32_t last, float* out);
  void (*addBias)(const float* bias, uint32_t cols, float* out);
};
const SmallKernels& smallKernels(SimdTarget target);

}  // namespace oriel
