// Measures the rate of reading experts from a model's file.
#pragma once

#include "gguf/model_file.h"
#include "model/tensor_index.h"

namespace oriel_internal {

/// Bytes per second of experts read in random order, packed and placed in host memory; 0 without experts. Takes up to a
/// second and memory for two experts.
Status measureFileSpeed(const ModelFile& file, const TensorIndex& tensors, const ModelDesc& model,
                        const oriel_allocator& allocator, const Log& log, double* bytes_per_s);

}  // namespace oriel_internal
