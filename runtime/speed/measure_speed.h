// Measured speed of a device: the synthetic model file, the rates, and their file.
#pragma once

#include <cstdint>

#include "base/log.h"
#include "budget/speed.h"
#include "exec/executor.h"
#include "exec/load_weights.h"
#include "gguf/gguf.h"
#include "model/keys.h"

namespace oriel_internal {

// A synthetic llama model as a GGUF file, so that timings use the normal path: file, plan, executor.

struct ProbeShape {
  uint32_t n_layers = 1;
  uint32_t n_embd = 64;
  uint32_t n_heads = 1;
  uint32_t n_kv_heads = 1;
  uint32_t head_dim = 64;
  uint32_t n_ff = 64;
  uint32_t n_vocab = 32;
  uint32_t tensor_type = 1;  ///< of every matrix, GGUF's number

  /// Weights multiplied for every token; excludes the head's n_vocab * n_embd.
  uint64_t bodyWeights() const {
    const uint64_t queries = uint64_t{n_heads} * head_dim;
    const uint64_t keys = uint64_t{n_kv_heads} * head_dim;
    return n_layers * (n_embd * (2 * queries + 2 * keys) + 3ull * n_embd * n_ff);
  }
};

/// Size of the file. All n_layers share one layer's data. 0 if the type's size is unknown or its blocks do not divide
/// the rows.
uint64_t probeFileBytes(const ProbeShape& shape);
/// Writes exactly that many bytes. All numbers are ordinary: not zero, not denormal, and too small to overflow a layer.
void writeProbeFile(const ProbeShape& shape, uint8_t* out);

// Measured rates in the cache folder: one small file per device, driver, library version and shape. Damaged or foreign
// files are ignored.

/// Looks up speed->device, ->driver and ->shape; on false, *speed is unchanged.
bool readSpeedFile(const char* dir, DeviceSpeed* speed);
/// Write errors are ignored.
void writeSpeedFile(const char* dir, const DeviceSpeed& speed, const Log& log);

// Measures the rate of reading experts from a model's file.

/// Bytes per second of experts read in random order, packed and placed in host memory; 0 without experts. Takes up to a
/// second and memory for two experts.
Status measureFileSpeed(const ModelFile& file, const TensorIndex& tensors, const ModelDesc& model,
                        const oriel_allocator& allocator, const Log& log, double* bytes_per_s);

// Times the library's kernels on one device with synthetic layers, and computes rates.

/// Creates an executor for a plan on the device to measure.
struct ExecutorMaker {
  Status (*make)(const void* context, const Plan& plan, const ExecutorMemory& memory,
                 Executor** executor) = nullptr;
  const void* context = nullptr;
};

/// The model that the rates are for.
struct SpeedTarget {
  ProbeShape shape;  ///< tensor_type is ignored
  /// By type: the number of weights in layers and in the output matrix.
  WorkShape::Matrices matrices[kMaxWorkTypes];
  uint32_t kernels[kMaxWorkTypes] = {};  ///< the device's chosen matmul variant for each type
  uint32_t n_matrices = 0;
  uint64_t features = 0;  ///< a hash of the device's active optional features
  uint32_t activation_bits = 16;

  /// Equal for models with equal rates.
  uint64_t hash() const;
};

SpeedTarget speedTargetOf(const ModelDesc& model, const WorkShape& work);
/// A generic model: medium-sized layers in F16, Q8_0 and Q4_0.
SpeedTarget anySpeedTarget();

/// Fills in the rates; types without a kernel are left out. Unless `again`, uses rates in `cache_dir` (may be null) that
/// were measured with the current kernels; these report no `progress`.
Status measureSpeed(const ExecutorMaker& maker, const SpeedTarget& target, const char* cache_dir,
                    bool again, const LoadProgress& progress, const oriel_allocator& allocator,
                    const Log& log, DeviceSpeed* speed);

}  // namespace oriel_internal
