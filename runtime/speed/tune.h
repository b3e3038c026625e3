// Finds a device's fastest matmul variant by timing.
#pragma once

#include "speed/measure_speed.h"

namespace oriel_internal {

constexpr uint32_t kMostMatmulCandidates = 8;

/// Tokens in the step that times the candidates for a use.
constexpr uint32_t tunedTokens(MatmulUse use) { return use == MatmulUse::kVector ? 1 : 32; }

struct MatmulTimes {
  char names[kMostMatmulCandidates][64];
  double microseconds[kMostMatmulCandidates];  ///< of a step of a small synthetic model
  uint32_t count;  ///< 0: the device has one variant only, or it was measured before
  uint32_t chosen;
  uint32_t standard;  ///< used without a measurement
  bool kept;          ///< in the cache folder
};

/// Times the candidates for matrices of `tensor_type` (GGUF's number) and stores the fastest, unless that was done
/// before and `again` is false. ORIEL_ERROR_UNSUPPORTED without a kernel for the type.
Status tuneMatmul(const ExecutorMaker& maker, MatmulUse use, uint32_t tensor_type, bool again,
                  const oriel_allocator& allocator, const Log& log, MatmulTimes* times);

}  // namespace oriel_internal
