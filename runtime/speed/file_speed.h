// How fast experts come from a model's file.
#pragma once

#include "gguf/model_file.h"
#include "model/tensor_index.h"

namespace oriel_internal {

/// Bytes a second of experts read from the file in no order, packed and put into place in host memory; 0 for a model
/// without experts. Takes up to a second, and memory for two experts meanwhile.
Status measureFileSpeed(const ModelFile& file, const TensorIndex& tensors, const ModelDesc& model,
                        const oriel_allocator& allocator, const Log& log, double* bytes_per_s);

}  // namespace oriel_internal
