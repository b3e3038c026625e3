// Measured rates in the cache folder: one small file per device, driver, library version and shape. Damaged or foreign
// files are ignored.
#pragma once

#include "base/log.h"
#include "budget/speed.h"
#include "gguf/model_file.h"
#include "model/tensor_index.h"

namespace oriel_internal {

/// Looks up speed->device, ->driver and ->shape; on false, *speed is unchanged.
bool readSpeedFile(const char* dir, DeviceSpeed* speed);
/// Write errors are ignored.
void writeSpeedFile(const char* dir, const DeviceSpeed& speed, const Log& log);

// Measures the rate of reading experts from a model's file.

/// Bytes per second of experts read in random order, packed and placed in host memory; 0 without experts. Takes up to a
/// second and memory for two experts.
Status measureFileSpeed(const ModelFile& file, const TensorIndex& tensors, const ModelDesc& model,
                        const oriel_allocator& allocator, const Log& log, double* bytes_per_s);

}  // namespace oriel_internal
