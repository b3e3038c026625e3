// Reads single values of a small float tensor: biases, norms, factors.
#pragma once

#include "base/limits.h"
#include "base/log.h"
#include "gguf/gguf.h"

namespace oriel_internal {

/// Upper limit of one call.
constexpr uint32_t kMostTensorValues = kMaxHeadDim;

/// Reads `count` <= kMostTensorValues values from index `first` on. The tensor must be F32, F16 or BF16 and have
/// these values. ORIEL_ERROR_IO as GgufFile::read.
Status readValues(const GgufFile& file, const GgufTensor& tensor, uint64_t first, uint32_t count,
                  const Log& log, double* values);

}  // namespace oriel_internal
