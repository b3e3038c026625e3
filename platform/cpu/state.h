// Kernels of recurrent states (shaders/shared/layout.h has the formulas). Different calls write disjoint memory,
// and values do not depend on the division into calls, so threads may share the work in any way.
#pragma once

#include "cpu/simd.h"
#include "exec/executor.h"
#include "plan/plan.h"

namespace oriel_internal {

struct StateInputsTask {
  StateInputsPush push = {};
  const float* in = nullptr;  ///< of the first token
  StepState state;
  const float* taps = nullptr;
  const float* gates = nullptr;
  float* out = nullptr;
  uint32_t n_tokens = 1;
};
/// Parts of a token: query heads, key heads, value heads, and last all decays and factors.
constexpr uint32_t stateInputParts(const StateInputsPush& p) {
  return 2 * p.key_heads + p.heads + 1;
}

struct StateScanTask {
  StateScanPush push = {};
  const float* in = nullptr;  ///< of the first token
  StepState state;
  const float* skip = nullptr;  ///< [heads]; Mamba-2 only
  float* out = nullptr;
  uint32_t n_tokens = 1;
};
/// Rows of a head per call: with several tokens, they are floats on the stack.
constexpr uint32_t kMostScanFloats = 1u << 14;
constexpr uint32_t mostScanRows(uint32_t key_dim) {
  return kMostScanFloats / static_cast<uint32_t>(alignUp(key_dim, kGroupRows)) / kGroupRows *
         kGroupRows;
}

struct StateKernels {
  /// Parts first .. last - 1 of tokens begin .. end - 1. With the step's last token, also stores the parts' columns.
  void (*inputs)(const StateInputsTask& task, uint32_t first, uint32_t last, uint32_t begin,
                 uint32_t end);
  /// Rows first .. first + count - 1 of a head, over all tokens; no more than mostScanRows() unless there is one token.
  void (*scan)(const StateScanTask& task, uint32_t head, uint32_t first, uint32_t count);
  /// One token; pointers are to its first values.
  void (*gatedNorm)(const GatedNormPush& push, const float* in, const float* gates,
                    const float* weight, float* out);
};
const StateKernels& stateKernels(SimdTarget target);
/// Part of inputs: all decays of a token.
void decaysByKey(const StateInputsPush& push, const float* in, const float* gates, float* decays);
/// Part of gatedNorm: gates shared by rows, and gates without a vector version.
void gateRow(const GatedNormPush& push, const float* in, const float* gates, uint32_t n,
             float* out);

}  // namespace oriel_internal
