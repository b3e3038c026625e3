// Which of a device's ways to multiply a matrix is fastest, by trying them.
#pragma once

#include "speed/measure_speed.h"

namespace oriel_internal {

constexpr uint32_t kMostMatmulCandidates = 8;

/// Tokens of a step that the candidates for a use are timed with.
constexpr uint32_t tunedTokens(MatmulUse use) { return use == MatmulUse::kVector ? 1 : 32; }

struct MatmulTimes {
  char names[kMostMatmulCandidates][64];
  double microseconds[kMostMatmulCandidates];  ///< of a step of a small made-up model
  uint32_t count;  ///< 0: the device has no choice, or it was measured before
  uint32_t chosen;
  uint32_t standard;  ///< what is used where nothing was measured
  bool kept;          ///< in the cache folder
};

/// Times the candidates for matrices of `tensor_type` (as GGUF numbers it) and keeps the fastest, unless that
/// was done before and `again` is false. ORIEL_ERROR_UNSUPPORTED when no kernel takes the type.
Status tuneMatmul(const ExecutorMaker& maker, MatmulUse use, uint32_t tensor_type, bool again,
                  const oriel_allocator& allocator, const Log& log, MatmulTimes* times);

}  // namespace oriel_internal
