// Single values of a small float tensor: biases, norms, factors.
#pragma once

#include "base/limits.h"
#include "base/log.h"
#include "gguf/gguf.h"

namespace oriel_internal {

/// Upper limit of one call.
constexpr uint32_t kMostTensorValues = kMaxHeadDim;

/// Reads `count` <= kMostTensorValues values from number `first` on of a tensor in F32, F16 or BF16, which must
/// have them. ORIEL_ERROR_IO as GgufFile::read.
Status readValues(const GgufFile& file, const GgufTensor& tensor, uint64_t first, uint32_t count,
                  const Log& log, double* values);

}  // namespace oriel_internal
