// Times the library's kernels on one device with synthetic layers, and computes rates.
#pragma once

#include "budget/speed.h"
#include "exec/executor.h"
#include "exec/load_weights.h"
#include "speed/probe_file.h"

namespace oriel_internal {

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
